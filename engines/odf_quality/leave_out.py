"""The converter that leaves out rows by a word, such as the total below a table.

Source: clauses CONV-5 in ``spec/plug-ins/quality.md`` and CONV-7 in ``spec/conversion.md``.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.conversion.contract import ConverterContext, ParameterError, Selection


class LeaveOut(Selection):
    """Leaves out the rows that have one of some texts in a column: lines that are no data, such as totals."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``column`` of texts, and the ``values`` of rows that are left out, as they are written."""

        column: str
        values: list[str]

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        index = context.schema.get_field_index(parameters.column)
        names = context.schema.names
        if index < 0:
            raise ParameterError("column", expected="a column", found=parameters.column, known=names)
        kind = context.schema.field(index).type
        if not pa.types.is_string(kind):
            raise ParameterError("column", expected="texts (read the column as STRING)", found=str(kind))

    @property
    def column_names(self) -> tuple[str, ...]:
        """See ``Selection``."""
        return (self.parameters.column,)

    def leave_out(self, rows: pa.Table) -> pa.Array:
        """See ``Selection``."""
        found = pc.is_in(rows.column(0), pa.array(self.parameters.values, pa.string()))
        return pc.indices_nonzero(found).cast(pa.int64())
