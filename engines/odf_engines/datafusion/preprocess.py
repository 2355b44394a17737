"""The operation ``preprocess``: the queries of an ingest, over rows that the engine which ingests has converted.

Source: spec/ingest.md ING-7; clause FUSION-11 in ``spec/extensions/engine-contract.md``.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from datafusion import col

from odf_engines.datafusion.context import make_context, plan_query, query_errors, quoted
from odf_engines.datafusion.gate import check_query, has_union
from odf_engines.datafusion.query import write_rows
from odf_engines.datafusion.relations import read_files, register
from odf_engines.errors import InvalidQueryError
from odf_engines.host.messages import schema_text
from odf_engines.host.steps import steps_of

if TYPE_CHECKING:
    from datafusion import DataFrame

_INPUT: Final = "input"


def run(request: dict[str, Any], folder: Path, memory_bytes: int) -> dict[str, object]:
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
