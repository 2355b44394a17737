"""The operations ``transform``, one step of a derivative, and ``check``, a grade for one before it is published.

Source: clauses ENGINE-7, ENGINE-12, GATE-1, FUSION-2 to FUSION-8 and FUSION-14 in
``spec/extensions/engine-contract.md``.
"""

import shutil
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odf_engines.contract import GradeLevel, TransformRequest
from odf_engines.datafusion.context import make_context, plan_query
from odf_engines.datafusion.gate import check_plan, find_limits, has_union
from odf_engines.datafusion.output import (
    QueryOutput,
    as_declared,
    check_columns,
    in_slice_types,
    output_schema,
    with_event_times,
)
from odf_engines.datafusion.relations import count_rows, empty_rows, input_rows, register
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_engines.host.arrow_texts import schema_text
from odf_engines.host.event_times import NoEventTimeError, suggest_query
from odf_engines.host.queries import OUTPUT, steps_of
from odf_engines.host.slices import write_slice
from odf_protocol.events import TransformSql
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext


def run(request: TransformRequest, folder: Path, memory_bytes: int) -> dict[str, object]:
    """Run one step; see ``host.worker`` for what goes in and out."""
    aliases = [each.alias for each in request.inputs]
    if len(set(aliases)) != len(aliases):
        raise InvalidQueryError(f"two inputs have the same alias: {', '.join(aliases)}")
    work = folder / "work"
    try:
        context = make_context(memory_bytes, is_repeatable=True)
        inputs = {
            each.alias: input_rows(context, each, work / str(number)) for number, each in enumerate(request.inputs)
        }
        read = [count_rows(inputs[each.alias], each.vocabulary) for each in request.inputs]
        raw = plan_transform(context, request.transform, inputs)
        result = in_slice_types(raw, request.vocabulary)
        check_columns(result.schema(), request.vocabulary)
        is_ordered = not has_union(raw)
        found = QueryOutput(result, request.vocabulary, work, is_ordered=is_ordered)
        schema = as_declared(output_schema(found.schema, request.vocabulary), request.declared)
        rows_out = write_slice(
            found.iter_chunks(request.limits.output_rows),
            schema,
            folder / "data.parquet",
            next_offset=request.next_offset,
            system_time_ms=request.system_time.unix_ms,
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)
    watermark = _watermark(request)
    return {
        "schema": schema_text(schema),
        "data": "data.parquet" if rows_out else None,
        "inputs": read,
        "rows_out": rows_out,
        "late_rows": 0,
        "watermark_ms": None if watermark is None else watermark.unix_ms,
        "checkpoint": None,
        "is_ordered": is_ordered,
    }


def _watermark(request: TransformRequest) -> Timestamp | None:
    """Return the least of the newest watermarks that inputs stated in this step, never below the one before."""
    stated = [max(mark.event_time for mark in each.watermarks) for each in request.inputs if each.watermarks]
    known = [each for each in (min(stated, default=None), request.prev_watermark) if each is not None]
    return max(known, default=None)


def run_check(request: dict[str, Any], folder: Path, memory_bytes: int) -> dict[str, object]:
    """Grade the transform of a request; see ``host.worker`` for what goes in and out."""
    numbers = count()

    def look_at(transform: TransformSql) -> dict[str, object]:
        return _grade(request | {"transform": transform}, folder / "work" / str(next(numbers)), memory_bytes)

    try:
        return look_at(request["transform"])
    except NotReproducibleError as error:
        return _rejection(error.expression, error.reason, error.rewrite)
    except NoEventTimeError as error:
        absent = error.absent
        times = {each.name: each.vocabulary.event_time for each in request["inputs"]}
        query = suggest_query(request["transform"], times, absent.name, look_at)
        rejection = _rejection("query", error.message, query or absent.ways_out)
        return rejection | {"time_columns": list(absent.times)}
    except InvalidQueryError as error:
        return _rejection(error.position or "query", error.message, "a query that can be run")
    finally:
        shutil.rmtree(folder / "work", ignore_errors=True)


def _grade(request: dict[str, Any], work: Path, memory_bytes: int) -> dict[str, object]:
    vocabulary = request["vocabulary"]
    context = make_context(memory_bytes, is_repeatable=True)
    inputs = {
        each.name: empty_rows(context, each.schema, work / str(number), alias=each.name)
        for number, each in enumerate(request["inputs"])
    }
    raw = plan_transform(context, request["transform"], inputs)
    result = in_slice_types(raw, vocabulary)
    check_columns(result.schema(), vocabulary)
    schema = with_event_times(output_schema(QueryOutput(result, vocabulary, work).schema, vocabulary), vocabulary)
    operations = {each.vocabulary.op for each in request["inputs"]}
    findings = [
        {"expression": each.expression, "reason": each.reason, "rewrite": each.rewrite}
        for each in find_limits(raw, operations=operations, op=vocabulary.op)
    ]
    level = GradeLevel.PINNED if findings else GradeLevel.REPRODUCIBLE
    return {"level": level.value, "findings": findings, "schema": schema_text(schema), "obstacle": None}


def _rejection(expression: str, reason: str, rewrite: str) -> dict[str, object]:
    finding = {"expression": expression, "reason": reason, "rewrite": rewrite}
    return {"level": GradeLevel.REJECTED.value, "findings": [finding], "schema": None, "obstacle": None}


def plan_transform(
    context: "SessionContext", transform: TransformSql, inputs: "Mapping[str, DataFrame]"
) -> "DataFrame":
    """Return the rows of the last step, not computed yet.

    Raises:
        InvalidQueryError, NotReproducibleError: The gate's rejection.
    """
    if transform.temporal_tables:
        raise InvalidQueryError("temporal tables need stream processing, which this engine does not have")
    known = list(inputs)
    for alias, rows in inputs.items():
        register(context, alias, rows)
    *before, last = steps_of(transform)
    for step in before:
        assert step.alias is not None
        if step.alias in known or step.alias == OUTPUT:
            raise InvalidQueryError(f"two inputs or steps are called {step.alias}")
        register(context, step.alias, _plan(context, step.query))
        known.append(step.alias)
    register(context, OUTPUT, _plan(context, last.query))
    return context.table(OUTPUT)


def _plan(context: "SessionContext", sql: str) -> "DataFrame":
    # Names with dots stand in quotes: the other implementation reads them so too.
    rows = plan_query(context, sql)
    check_plan(rows)
    return rows
