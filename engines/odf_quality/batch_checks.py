"""Validators of batches: uniqueness, counts of rows, freshness.

Source: clause VALID-6 in ``spec/plug-ins/quality.md``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.validation.columns import ColumnPath
from odf_engines.validation.contract import Context, Fault, ParameterError, Validator
from odf_protocol.comparison_form import with_comparison_forms

_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DAY_MS = _UNITS_MS["d"]


class Unique(Validator):
    """Values that stand in one row of a batch only: the first row of several is good, the later ones are not."""

    sees_whole_batch = True

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns`` whose values together are unique; a row with a null among them is not compared."""

        columns: list[str]

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        if not parameters.columns:
            raise ParameterError("columns", expected="at least one column", found="none")
        for name in parameters.columns:
            if name not in context.schema.names:
                names = context.schema.names
                expected = f"a column of the rows ({', '.join(names)})"
                raise ParameterError("columns", expected=expected, found=name, known=names)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.parameters.columns))

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        place = "\0place"
        numbered = with_comparison_forms(rows, self.column_names)
        numbered = numbered.append_column(place, pa.array(np.arange(rows.num_rows)))
        compared = numbered.drop_null()
        # With threads each would have a table of all values, and joining them takes longer than they save.
        groups = compared.group_by(list(self.column_names), use_threads=False)
        first = groups.aggregate([(place, "min")]).column(f"{place}_min")
        is_first = np.zeros(rows.num_rows, bool)
        is_first[first.to_numpy()] = True
        places = compared.column(place).to_numpy()
        bad = places[~is_first[places]]
        column = self.column_names[0] if len(self.column_names) == 1 else None
        named = ", ".join(self.column_names)
        yield Fault(code="duplicate", message=f"an earlier row has the same {named}", column=column, rows=pa.array(bad))


class RowCount(Validator):
    """How many rows a batch may have."""

    sees_whole_batch = True

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``least`` and ``most`` rows."""

        least: int = 0
        most: int | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        return ()

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        count, least, most = rows.num_rows, self.parameters.least, self.parameters.most
        if count < least:
            yield Fault(code="row-count", message=f"expected at least {least} rows, found {count}")
        if most is not None and count > most:
            yield Fault(code="row-count", message=f"expected at most {most} rows, found {count}")


class Freshness(Validator):
    """How old the newest value of a batch may be."""

    sees_whole_batch = True

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column`` of dates or timestamps, and ``within``: a number and ``s``, ``m``, ``h`` or ``d``, as ``3d``."""

        column: str
        within: str

    def __init__(self, parameters: Any, context: Context) -> None:
        super().__init__(parameters, context)
        self._path, self._now_ms = ColumnPath.find(context.schema, parameters.column), context.now_ms
        if self._path.steps or not (pa.types.is_timestamp(self._path.type) or pa.types.is_date32(self._path.type)):
            raise ParameterError("column", expected="a column of dates or timestamps", found=str(self._path.type))
        found = re.fullmatch(r"([0-9]{1,6})([smhd])", parameters.within, re.ASCII)
        if found is None:
            raise ParameterError("within", expected="a number and s, m, h or d, as 3d", found=parameters.within)
        self._within_ms = int(found[1]) * _UNITS_MS[found[2]]

    @property
    def column_names(self) -> tuple[str, ...]:
        return (self._path.column,)

    def check(self, rows: pa.Table) -> Iterable[Fault]:
        is_day = pa.types.is_date32(self._path.type)
        values = self._path.read(rows).values
        newest = pc.max(values.cast(pa.int32() if is_day else pa.int64())).as_py()
        if newest is None:
            yield self._fault("there is no value at all")
        elif self._now_ms - newest * (_DAY_MS if is_day else 1) > self._within_ms:
            yield self._fault(f"the newest value is {pc.max(values).cast(pa.string()) if is_day else _shown(newest)}")

    def _fault(self, found: str) -> Fault:
        message = f"expected a value of the last {self.parameters.within}, but {found}"
        return Fault(code="stale", message=message, column=self.parameters.column)


def _shown(unix_ms: int) -> str:
    return str(np.datetime64(unix_ms, "ms")) + "Z"
