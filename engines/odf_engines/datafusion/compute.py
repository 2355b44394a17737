"""The converter of columns that SQL computes: the same in whichever engine's sandbox, as it brings its own.

Source: clauses CONV-5 and CONV-9 in ``spec/conversion.md``.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from odf_engines.conversion.contract import Converted, Converter, ConverterContext, Fault, ParameterError
from odf_engines.datafusion.context import make_context, parse_expression, query_errors
from odf_engines.errors import InvalidQueryError, NotReplayableError
from odf_engines.host.query_bounds import check_query_bounds
from odf_engines.records.carriers import slice_type_of
from odf_protocol.errors import UnsupportedError

if TYPE_CHECKING:
    from datafusion import DataFrame, Expr, SessionContext

__all__ = ["Compute"]

_MEMORY_BYTES: Final = 512 * 1024 * 1024  # what one row gives needs none of DataFusion's own; the sandbox bounds all
_ROWS: Final = "rows"
_OF_SEVERAL_ROWS: Final = re.compile(r"\bUNNEST\(|^\s*(?:Subquery|WindowAggr)\b", re.MULTILINE)
_UNKNOWN: Final = re.compile(r'No field named "?(\w+)')


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
        self._context = _make_context()
        rows = self._rows(pa.RecordBatch.from_pylist([], schema=context.schema))
        self._schema = context.schema
        for name, sql in parameters.columns.items():
            kind = self._find_type(rows, name, sql)
            field, place = pa.field(name, kind, nullable=True), self._schema.get_field_index(name)
            self._schema = self._schema.append(field) if place < 0 else self._schema.set(place, field)

    @property
    def schema(self) -> pa.Schema:
        """See ``Converter``."""
        return self._schema

    def convert(self, rows: pa.RecordBatch) -> Converted:
        """See ``Converter``."""
        names = [*self.parameters.columns]
        try:
            return Converted(self._with(rows, self._compute(rows, names)))
        except InvalidQueryError:
            if rows.num_rows > 1:
                raise  # whoever called asks again with fewer rows
        found, faults = [], []
        for name in names:
            try:
                found += self._compute(rows, [name])
            except InvalidQueryError as error:
                found.append(pa.nulls(1, self._schema.field(name).type))
                faults.append(Fault(code="expression", message=error.message, column=name, rows=pa.array([0])))
        return Converted(self._with(rows, found), tuple(faults))

    def _with(self, rows: pa.RecordBatch, computed: list[pa.Array]) -> pa.RecordBatch:
        new = dict(zip(self.parameters.columns, computed, strict=True))
        columns = [new[name] if name in new else rows.column(name) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _compute(self, rows: pa.RecordBatch, names: list[str]) -> list[pa.Array]:
        given = self._rows(rows)
        columns = [self._expression(given, name).alias(str(place)) for place, name in enumerate(names)]
        with query_errors():
            table = pa.Table.from_batches([each.to_pyarrow() for each in given.select(*columns).execute_stream()])
        kinds = [self._schema.field(name).type for name in names]
        return [pa.concat_arrays(table.column(place).cast(kind).chunks) for place, kind in enumerate(kinds)]

    def _expression(self, rows: "DataFrame", name: str) -> "Expr":
        expression, kind = parse_expression(rows, self.parameters.columns[name]), self._schema.field(name).type
        return expression.cast(kind) if pa.types.is_timestamp(kind) else expression

    def _rows(self, rows: pa.RecordBatch) -> "DataFrame":
        found = self._context.from_arrow(rows, _ROWS)
        self._context.deregister_table(_ROWS)  # they are gone with the last that asks them
        return found

    def _find_type(self, rows: "DataFrame", name: str, sql: str) -> pa.DataType:
        """Find the type of an expression; it is planned, and nothing is computed.

        Raises:
            ParameterError: It cannot be computed for each row by itself, or gives what others could not repeat.
        """
        try:
            check_query_bounds(sql, has_escapes=False)
            expression = parse_expression(rows, sql)
            with query_errors():
                planned = rows.select(expression.alias(name))
                found, plan = planned.schema().field(0).type, planned.logical_plan().display_indent()
            if (several := _OF_SEVERAL_ROWS.search(plan)) is not None:
                told = f"{name}: {several[0].strip().rstrip('(')}"
                raise ParameterError("columns", expected="an expression over the columns of one row", found=told)
            if pa.types.is_null(found):
                raise ParameterError("columns", expected="a type (CAST(NULL AS BIGINT))", found=f"{name}: {sql}")
            return slice_type_of(found)
        except (InvalidQueryError, NotReplayableError, UnsupportedError) as error:
            unknown = _UNKNOWN.search(str(error))
            if unknown is not None:
                names = rows.schema().names
                expected = f"an expression over columns of the rows ({', '.join(names)})"
                raise ParameterError("columns", expected=expected, found=unknown[1], known=names) from error
            told = f"{name}: {error}"
            raise ParameterError(
                "columns", expected="an expression over one row that can be repeated", found=told
            ) from error


def _make_context() -> "SessionContext":
    context = make_context(_MEMORY_BYTES, is_repeatable=True)
    for name in context.udafs():
        context.deregister_udaf(name)
    return context
