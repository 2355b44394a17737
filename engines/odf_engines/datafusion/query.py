"""The operations ``query``, one read-only query over datasets, and ``preprocess``, the queries of an ingest.

Each dataset is a table under its name, dots and all: the whole changelog, system columns included. Beside it stands
``<name>__state``, the current rows.

Source: spec/query.md QUERY-1 to QUERY-7; ING-7 in spec/ingest.md; clauses FUSION-9 and FUSION-11 in
``spec/extensions/engine-contract.md``.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import col, literal

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.datafusion.context import make_context, plan_query, query_errors, quoted
from odf_engines.datafusion.current_rows import current_rows
from odf_engines.datafusion.gate import check_query, has_union
from odf_engines.datafusion.output import plain_schema
from odf_engines.datafusion.query_errors import explain
from odf_engines.datafusion.relations import empty_rows, read_files, read_whole_floats, register, register_forms
from odf_engines.errors import EngineError, EngineFailureError, InvalidQueryError
from odf_engines.host.arrow_texts import schema_text
from odf_engines.host.queries import distinguish, quote_dotted_names, steps_of

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext


STATE_SUFFIX = "__state"


def run(request: QueryRequest, folder: Path, memory_bytes: int) -> dict[str, object]:
    """Answer one query; see ``host.worker`` for what goes in and out.

    Raises:
        InvalidQueryError: It is not one query over the tables, or fails on a value.
    """
    work = folder / "work"
    spill = work / "spill"
    try:
        spill.mkdir(parents=True)
        context = make_context(memory_bytes, is_repeatable=False, spill=spill)
        taken = {table.name for table in request.tables}
        names: list[str] = []
        unreadable: dict[str, EngineError] = {}
        lowered = request.sql.lower()
        for number, table in enumerate(request.tables):
            # A table that the text does not name cannot be asked.
            if table.name.lower() in lowered:
                try:
                    names += _register(context, table, request, taken, work / str(number))
                except (InvalidQueryError, EngineFailureError) as error:
                    unreadable[table.name] = error
        try:
            answer = plan_query(context, quote_dotted_names(request.sql, names))
        except InvalidQueryError as error:
            # A name may stand in a text and be no table, as of a column: only a query that lacks the table fails.
            stated = error.message.lower()
            raise next((found for name, found in unreadable.items() if name.lower() in stated), error) from error
        check_query(answer)
        if request.max_rows is not None:
            answer = answer.limit(request.max_rows)
        rows, schema = write_rows(answer, folder / "result.parquet")
    except InvalidQueryError as error:
        raise explain(error, request.sql, {*taken, *request.known}) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {"result": "result.parquet", "rows": rows, "schema": schema_text(schema)}


def _register(
    context: "SessionContext", table: QueryTable, request: QueryRequest, taken: set[str], folder: Path
) -> list[str]:
    if table.slices:
        rows = read_whole_floats(context, table.slices, folder)
    else:
        rows = empty_rows(context, table.schema, folder, alias=table.name)
    register_forms(context, table, rows)
    if not table.is_changelog:
        register(context, table.name, rows)
        return [table.name]
    if request.as_of is not None:
        moment = pa.scalar(request.as_of.unix_ms, pa.timestamp("ms", "UTC"))
        rows = rows.filter(col(quoted(table.vocabulary.system_time)) <= literal(moment))
    register(context, table.name, rows)
    state = f"{table.name}{STATE_SUFFIX}"
    # A dataset of this name hides the view, and a view that the text does not name cannot be asked.
    if state in taken or state.lower() not in request.sql.lower():
        return [table.name]
    register(context, state, current_rows(context, table, f"{state}/taken"))
    return [table.name, state]


def write_rows(answer: "DataFrame", target: Path) -> tuple[int, pa.Schema]:
    """Compute rows into a Parquet file; return how many, and their columns.

    Raises:
        InvalidQueryError, MemoryError: As ``query_errors``.
    """
    with query_errors():
        schema = plain_schema(answer.schema())
    names = distinguish(schema.names)
    schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
    count = 0
    with query_errors(), pq.ParquetWriter(target, schema, version="2.6", compression="snappy") as writer:
        for each in answer.execute_stream():
            table = pa.Table.from_batches([each.to_pyarrow()]).rename_columns(names).cast(schema)
            writer.write_table(table)
            count += table.num_rows
    return count, schema


_INPUT: Final = "input"


def run_preprocess(request: dict[str, Any], folder: Path, memory_bytes: int) -> dict[str, object]:
    """Run the queries over the rows of a file; see ``host.worker`` for what goes in and out.

    Raises:
        InvalidQueryError: One is no query over ``input`` and the steps before it, or fails on a value.
    """
    work = folder / "work"
    try:
        context = make_context(memory_bytes, is_repeatable=False)
        register(context, _INPUT, read_files(context, [request["rows"]], work))
        known, result = {_INPUT}, None
        for step in steps_of(request["transform"]):
            result = plan_query(context, step.query)
            check_query(result)
            if step.alias is not None:
                if step.alias in known:
                    raise InvalidQueryError(f"two steps, or a step and the input, are called {step.alias}")
                register(context, step.alias, result)
                known.add(step.alias)
        assert result is not None
        _check_columns(result.schema())
        count, schema = write_rows(_in_one_order(result), folder / "result.parquet")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {"result": "result.parquet", "rows": count, "schema": schema_text(schema)}


def _in_one_order(rows: "DataFrame") -> "DataFrame":
    """Order the rows of a union, whose parts come as they are computed; others have the order of their plan."""
    if not has_union(rows):
        return rows
    with query_errors():
        return rows.sort(*(col(quoted(each)).sort(ascending=True, nulls_first=True) for each in rows.schema().names))


def _check_columns(found: pa.Schema) -> None:
    if len(set(found.names)) != len(found.names):
        raise InvalidQueryError(f"the result has two columns of one name: {', '.join(found.names)}")
    for field in found:
        if pa.types.is_null(field.type):
            raise InvalidQueryError(f"the column {field.name!r} has no type: cast its NULL to one")
