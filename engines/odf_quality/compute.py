"""The converter of columns that SQL computes.

Source: clauses CONV-5 and CONV-9 in ``spec/plug-ins/quality.md``.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from odf_engines.conversion.contract import Converted, Converter, ConverterContext, Fault, ParameterError
from odf_engines.errors import InvalidQueryError
from odf_quality.row_expressions import RowExpressions


class Compute(Converter):
    """Computes columns of each row by expressions in SQL (DataFusion's), which give the same wherever they run.

    A row on which one fails goes to quarantine; names are as written, upper and lower case.
    """

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        """``columns``: expressions by name; a column that is there is replaced, a new one comes last.

        All see the columns as they were given: ``{total: price * CAST(pieces AS DECIMAL(9,0))}``.
        """

        columns: dict[str, str]

    def __init__(self, parameters: Any, context: ConverterContext) -> None:
        super().__init__(parameters, context)
        if not parameters.columns or "" in parameters.columns:
            raise ParameterError("columns", expected="expressions by the names of columns", found="none, or no name")
        self._expressions = RowExpressions(context.schema, parameters.columns, "columns")
        self._schema = context.schema
        for name, kind in self._expressions.types.items():
            field, place = pa.field(name, kind, nullable=True), self._schema.get_field_index(name)
            self._schema = self._schema.append(field) if place < 0 else self._schema.set(place, field)

    @property
    def schema(self) -> pa.Schema:
        """See ``Converter``."""
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        """See ``Converter``."""
        try:
            return Converted(self._with(rows, self._expressions.compute(rows)))
        except InvalidQueryError:
            found = [self._compute_each(rows, name) for name in self.parameters.columns]
        return Converted(self._with(rows, [values for values, _ in found]), tuple(each for _, each in found if each))

    def _compute_each(self, rows: pa.RecordBatch, name: str) -> tuple[pa.Array, Fault | None]:
        """Compute a column, and say on which rows it fails."""
        values, messages = self._expressions.compute_each(rows, name)
        failed, reported = pa.array(messages, pa.int64()), pa.array(messages.values(), pa.string())
        fault = Fault(code="expression", message="", messages=reported, column=name, rows=failed) if messages else None
        return values, fault

    def _with(self, rows: pa.RecordBatch, computed: list[pa.Array]) -> pa.RecordBatch:
        new = dict(zip(self.parameters.columns, computed, strict=True))
        columns = [new[name] if name in new else rows.column(name) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)
