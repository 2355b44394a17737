"""The converter of columns that SQL computes: the same in whichever engine's sandbox, as it brings its own.

Source: clauses CONV-5 and CONV-9 in ``spec/conversion.md``.
"""

import re
from collections.abc import Iterator
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
    from datafusion import DataFrame, ExecutionPlan, Expr, SessionContext

_MEMORY_BYTES: Final = 512 * 1024 * 1024  # what one row gives needs none of DataFusion's own; the sandbox bounds all
_ROWS: Final = "rows"
_OF_ONE_ROW: Final = frozenset({"ProjectionExec", "DataSourceExec"})
"""Parts of a plan that computes each row by itself."""
_PART_ROWS: Final = 256  # guess: rows of a part with one that fails are computed again, each by itself
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
            found = [self._compute_each(rows, name) for name in names]
        return Converted(self._with(rows, [values for values, _ in found]), tuple(each for _, each in found if each))

    def _compute_each(self, rows: pa.RecordBatch, name: str) -> tuple[pa.Array, Fault | None]:
        """Compute a column, and say on which rows it fails."""
        nothing, values, messages = pa.nulls(1, self._schema.field(name).type), [], {}
        for start, part in self._iter_parts(rows, name, _PART_ROWS):
            if isinstance(part, pa.Array):
                values.append(part)
                continue
            for place, row in self._iter_parts(rows.slice(start, _PART_ROWS), name, 1):
                if isinstance(row, InvalidQueryError):
                    messages[start + place] = row.message
                values.append(row if isinstance(row, pa.Array) else nothing)
        failed, told = pa.array(messages, pa.int64()), pa.array(messages.values(), pa.string())
        fault = Fault(code="expression", message="", messages=told, column=name, rows=failed) if messages else None
        return pa.concat_arrays(values), fault

    def _iter_parts(
        self, rows: pa.RecordBatch, name: str, size_rows: int
    ) -> Iterator[tuple[int, "pa.Array | InvalidQueryError"]]:
        """Compute a column in parts of rows, in one plan; give where each begins, and its values or its error."""
        starts = range(0, rows.num_rows, size_rows)
        given = self._context.create_dataframe([[rows.slice(each, size_rows)] for each in starts], _ROWS, rows.schema)
        self._context.deregister_table(_ROWS)
        with query_errors():
            streams = given.select(self._expression(given, name)).execute_stream_partitioned()
        for start, stream in zip(starts, streams, strict=True):
            try:
                with query_errors():
                    table = pa.Table.from_batches([each.to_pyarrow() for each in stream])
                yield start, pa.concat_arrays(table.column(0).cast(self._schema.field(name).type).chunks)
            except InvalidQueryError as error:
                yield start, error

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

    def _check_plan(self, planned: "DataFrame", name: str) -> None:
        """Refuse what is not computed for each row by itself: the library's own plan says so, or there is none."""
        try:
            with query_errors():
                several = set(_iter_nodes(planned.execution_plan())) - _OF_ONE_ROW
        except InvalidQueryError as error:
            several = {error.message.splitlines()[-1]}
        if several:
            told = f"{name}: {', '.join(sorted(several))}"
            raise ParameterError("columns", expected="an expression over the columns of one row", found=told)

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
                found = planned.schema().field(0).type
            self._check_plan(planned, name)
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


def _iter_nodes(plan: "ExecutionPlan") -> Iterator[str]:
    """Name the parts of a plan."""
    yield plan.display().partition(":")[0].strip()
    for child in plan.children():
        yield from _iter_nodes(child)


def _make_context() -> "SessionContext":
    context = make_context(_MEMORY_BYTES, is_repeatable=True)
    for name in context.udafs():
        context.deregister_udaf(name)
    return context
