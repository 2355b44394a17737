"""The operation ``transform``: one step of a derivative.

Source: clauses ENGINE-12 and FUSION-2 to FUSION-8 in ``spec/extensions/engine-contract.md``.
"""

import shutil
from pathlib import Path

from odf_engines.contract import TransformRequest
from odf_engines.datafusion.context import make_context
from odf_engines.datafusion.output import Result, check_columns, in_slice_types, output_schema
from odf_engines.datafusion.relations import count_rows, input_rows
from odf_engines.datafusion.steps import plan_transform
from odf_engines.errors import InvalidQueryError
from odf_engines.host.messages import schema_text
from odf_engines.host.slices import write_slice
from odf_protocol.timestamp import Timestamp


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
        found = Result(result, request.vocabulary, work)
        schema = output_schema(found.schema, request.vocabulary)
        rows_out = write_slice(
            found.iter_pieces(request.limits.output_rows),
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
    }


def _watermark(request: TransformRequest) -> Timestamp | None:
    """Return the least of the newest watermarks that inputs stated in this step, never below the one before."""
    stated = [max(mark.event_time for mark in each.watermarks) for each in request.inputs if each.watermarks]
    known = [each for each in (min(stated, default=None), request.prev_watermark) if each is not None]
    return max(known, default=None)
