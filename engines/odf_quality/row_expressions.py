"""Expressions in SQL over the columns of one row: the same in whichever engine's sandbox, as they bring their own.

Source: clauses CONV-5, CONV-9 and VALID-7 in ``spec/plug-ins/quality.md``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odf_engines.datafusion.context import make_context, parse_expression, query_errors
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_engines.host.query_bounds import check_query_bounds
from odf_engines.records.carriers import slice_type_of
from odf_engines.validation.contract import ParameterError
from odf_protocol.errors import UnsupportedError

if TYPE_CHECKING:
    from datafusion import DataFrame, ExecutionPlan, Expr, SessionContext

_MEMORY_BYTES: Final = 512 * 1024 * 1024  # what one row gives needs none of DataFusion's own; the sandbox bounds all
_ROWS: Final = "rows"
_OF_ONE_ROW: Final = frozenset({"ProjectionExec", "DataSourceExec"})
"""Parts of a plan that computes each row by itself."""
_PART_ROWS: Final = 256  # guess: rows of a part with one that fails are computed again, each by itself
_UNKNOWN: Final = re.compile(r'No field named "?(\w+)')


class RowExpressions:
    """Expressions by name, all of them over the columns of rows as they were given.

    Args:
        schema: Of the rows.
        expressions: Texts by name; names of columns are as written, upper and lower case.
        parameter: Of the plug-in that declares them, for errors.

    Attributes:
        types: Of the results, as slices have them.

    Raises:
        ParameterError: One cannot be computed for each row by itself, or gives what others could not repeat.
    """

    def __init__(self, schema: pa.Schema, expressions: Mapping[str, str], parameter: str) -> None:
        self._expressions, self._parameter = dict(expressions), parameter
        self._context = _make_context()
        rows = self._rows(pa.RecordBatch.from_pylist([], schema=schema))
        self.types = {name: self._find_type(rows, name, sql) for name, sql in self._expressions.items()}

    def compute(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Compute all expressions, in their order.

        Raises:
            InvalidQueryError: One fails on a row; ``compute_each`` finds the row.
        """
        given = self._rows(rows)
        columns = [self._expression(given, name).alias(str(place)) for place, name in enumerate(self.types)]
        with query_errors():
            table = pa.Table.from_batches([each.to_pyarrow() for each in given.select(*columns).execute_stream()])
        return [
            pa.concat_arrays(table.column(place).cast(kind).chunks) for place, kind in enumerate(self.types.values())
        ]

    def compute_each(self, rows: pa.RecordBatch, name: str) -> tuple[pa.Array, dict[int, str]]:
        """Compute one expression, and return beside its values why it fails, by the places of the rows."""
        nothing, values, messages = pa.nulls(1, self.types[name]), [], {}
        for start, part in self._iter_parts(rows, name, _PART_ROWS):
            if isinstance(part, pa.Array):
                values.append(part)
                continue
            for place, row in self._iter_parts(rows.slice(start, _PART_ROWS), name, 1):
                if isinstance(row, InvalidQueryError):
                    messages[start + place] = row.message
                values.append(row if isinstance(row, pa.Array) else nothing)
        return pa.concat_arrays(values), messages

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
                yield start, pa.concat_arrays(table.column(0).cast(self.types[name]).chunks)
            except InvalidQueryError as error:
                yield start, error

    def _expression(self, rows: "DataFrame", name: str) -> "Expr":
        expression, kind = parse_expression(rows, self._expressions[name]), self.types[name]
        return expression.cast(kind) if pa.types.is_timestamp(kind) else expression

    def _rows(self, rows: pa.RecordBatch) -> "DataFrame":
        found = self._context.from_arrow(rows, _ROWS)
        self._context.deregister_table(_ROWS)  # they are gone with the last that asks them
        return found

    def _check_plan(self, planned: "DataFrame", name: str) -> None:
        """Reject what is not computed for each row by itself: the library's own plan says so, or there is none."""
        try:
            with query_errors():
                several = set(_iter_nodes(planned.execution_plan())) - _OF_ONE_ROW
        except InvalidQueryError as error:
            several = {error.message.splitlines()[-1]}
        if several:
            reported = f"{name}: {', '.join(sorted(several))}"
            raise ParameterError(self._parameter, expected="an expression over the columns of one row", found=reported)

    def _find_type(self, rows: "DataFrame", name: str, sql: str) -> pa.DataType:
        """Find the type of an expression; it is planned, and nothing is computed."""
        try:
            check_query_bounds(sql, has_escapes=False)
            expression = parse_expression(rows, sql)
            with query_errors():
                planned = rows.select(expression.alias(name))
                found = planned.schema().field(0).type
            self._check_plan(planned, name)
            if pa.types.is_null(found):
                expected = "a type (CAST(NULL AS BIGINT))"
                raise ParameterError(self._parameter, expected=expected, found=f"{name}: {sql}")
            return slice_type_of(found)
        except (InvalidQueryError, NotReproducibleError, UnsupportedError) as error:
            unknown = _UNKNOWN.search(str(error))
            if unknown is not None:
                names = rows.schema().names
                expected = f"an expression over columns of the rows ({', '.join(names)})"
                raise ParameterError(self._parameter, expected=expected, found=unknown[1], known=names) from error
            reported = f"{name}: {error}"
            raise ParameterError(
                self._parameter, expected="an expression over one row that can be repeated", found=reported
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
