"""The converter that leaves out rows of a batch that have the key of another one.

Source: clauses CONV-5 in ``spec/plug-ins/quality.md`` and CONV-7 in ``spec/conversion.md``.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.conversion.contract import ConverterContext, ParameterError, Selection
from odf_protocol.comparison_form import with_comparison_forms
from odf_quality.keys import check_key_columns

_KEPT: Final = ("First", "Last")
_PLACE: Final = "\0place"  # no column of a slice is called so
_RANK: Final = "\0rank"


class Deduplicate(Selection):
    """Of the rows of a batch that have the same key, leaves out all but one; a row with a null in its key stays."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns`` of the key; ``keep`` the ``First`` or ``Last``; ``by`` the order of a column, not of the file.

        Of equal values in ``by``, the place in the file decides; a row with none there is left out before others.
        """

        columns: list[str]
        keep: str = "First"
        by: str | None = None

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        check_key_columns(context.schema, parameters.columns, "columns")
        if parameters.by is not None:
            check_key_columns(context.schema, [parameters.by], "by")
        if parameters.keep not in _KEPT:
            raise ParameterError("keep", expected=" or ".join(_KEPT), found=parameters.keep, known=_KEPT)

    @property
    def column_names(self) -> tuple[str, ...]:
        """See ``Selection``."""
        by = self.parameters.by
        return tuple(dict.fromkeys([*self.parameters.columns, *([] if by is None else [by])]))

    def leave_out(self, rows: pa.Table) -> pa.Array:
        """See ``Selection``."""
        keys, by = list(self.parameters.columns), self.parameters.by
        compared = with_comparison_forms(rows, keys)
        compared = compared.append_column(_PLACE, pa.array(np.arange(rows.num_rows)))
        for name in keys:
            compared = compared.filter(pc.is_valid(compared.column(name)))
        direction = "ascending" if self.parameters.keep == _KEPT[0] else "descending"
        order = [(name, direction) for name in (by, _PLACE) if name is not None]
        # Nulls, and NaN before them, are last in either direction.
        compared = compared.take(pc.sort_indices(compared, sort_keys=order))
        compared = compared.append_column(_RANK, pa.array(np.arange(compared.num_rows)))
        best = compared.group_by(keys).aggregate([(_RANK, "min")]).column(f"{_RANK}_min").to_numpy()
        return pa.array(np.delete(compared.column(_PLACE).to_numpy(), best))
