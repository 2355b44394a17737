"""The current rows of a changelog, in the order in which they were given: ``NAME__state`` of a query.

A row is current as often as it was given and not taken back. Most rows were never taken back: those that equal none
that was are passed on as they are read, so a ``LIMIT`` is answered at once in constant memory. The others are counted,
and have the form in which they are compared: of equal rows some were taken back, and none can say which.

Source: clause QUERY-3 in ``spec/query.md``.
"""

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odf_engines.contract import QueryTable
from odf_engines.datafusion.context import plan_query, query_errors, quoted
from odf_engines.datafusion.output import free_name
from odf_engines.datafusion.relations import register
from odf_protocol.comparison_form import form_sql
from odf_protocol.schema_arrow import rows_schema_of

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

MAX_TAKEN_ROWS: Final = 200_000  # guess: some tens of megabytes; beyond, all rows are counted

_GIVEN: Final = "IN (0, 3)"  # append, correct-to
_TAKEN: Final = "NOT IN (0, 3)"


def current_rows(context: "SessionContext", table: QueryTable, taken_name: str) -> "DataFrame":
    """Return the current rows of a table that is registered.

    Args:
        context: Where it is.
        table: A changelog.
        taken_name: Free name of a table, for the rows that were taken back.
    """
    log = (table.vocabulary.offset, table.vocabulary.op, table.vocabulary.system_time)
    columns = [each for each in rows_schema_of(table.schema) if each.name not in log]
    op, source = quoted(table.vocabulary.op), quoted(table.name)
    data = ", ".join(quoted(each.name) for each in columns)
    taken = plan_query(context, f"SELECT {data} FROM {source} WHERE {op} {_TAKEN}")  # noqa: S608 - quoted, as below
    with query_errors():
        found = taken.limit(MAX_TAKEN_ROWS + 1).cache()
        count = found.count()
    given = f"SELECT {data} FROM {source} WHERE {op} {_GIVEN}"  # noqa: S608
    if not count:
        return plan_query(context, given)
    if count > MAX_TAKEN_ROWS or any(pa.types.is_nested(each.type) for each in found.schema()):
        return plan_query(context, _counted(source, op, columns))
    register(context, taken_name, found)
    unlike, alike = (
        f"SELECT g.* FROM {quoted(taken_name)} AS t RIGHT {kind} JOIN ({rows}) AS g ON {_equal(columns)}"  # noqa: S608
        for kind, rows in (("ANTI", given), ("SEMI", f"SELECT {op}, {data} FROM {source}"))  # noqa: S608
    )
    return plan_query(context, f"{unlike} UNION ALL {_counted(f'({alike})', op, columns)}")


def _equal(columns: list[pa.Field]) -> str:
    def form(side: str, column: pa.Field) -> str:
        return form_sql(f"{side}.{quoted(column.name)}", column.type)

    return " AND ".join(f"({form('t', each)} IS NOT DISTINCT FROM {form('g', each)})" for each in columns)


def _counted(source: str, op: str, columns: list[pa.Field]) -> str:
    """Write the query for each row as often as it was given and not taken back."""
    fields = [each.name for each in columns]
    data, count, one = ", ".join(map(quoted, fields)), free_name("count", fields), free_name("one", fields)
    given = f"sum(CASE WHEN {op} {_GIVEN} THEN 1 ELSE -1 END)"
    forms = ", ".join(f"{form_sql(quoted(each.name), each.type)} AS {quoted(each.name)}" for each in columns)
    alike = f"SELECT {op}, {forms} FROM {source}"  # noqa: S608 - quoted, as below
    counted = f"SELECT {data}, {given} AS {count} FROM ({alike}) GROUP BY {data}"  # noqa: S608
    repeated = f"SELECT {data}, unnest(array_repeat(0, {count})) AS {one} FROM ({counted}) WHERE {count} > 0"  # noqa: S608
    return f"SELECT {data} FROM ({repeated})"  # noqa: S608
