"""Check the answer to an ingest request, or to its halves where another engine runs its query, on the host.

What the engine says about bad rows and state cannot be checked against anything but itself; the slice can.

Source: clauses ENGINE-5, ENGINE-6 and ENGINE-19 in ``spec/extensions/engine-contract.md``; spec/ingest.md ING-7, ING-13
and ING-25.
"""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_engines.contract import IngestRequest, IngestResponse, Limits, PreparedRows, QueryResponse, Statistics
from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError
from odf_engines.host.output_checks import RowsFound, SizeCheck
from odf_engines.host.outputs import OperationOutput, OutputFolder
from odf_engines.host.receive import find_instant, receive_result, slice_check
from odf_engines.host.tables import table_of
from odf_engines.ingest_parts import MAX_CODES, MAX_IGNORED, MAX_REASONS, QuarantineReason
from odf_engines.stage_metrics import MAX_SAMPLE_ROWS, SampledStage, StageMetrics, read_stage_metrics
from odf_engines.stage_names import names_of
from odf_engines.validation.running_name import CONVERTER, READER, VALIDATOR, find_running
from odf_protocol.errors import shown
from odf_protocol.events import OffsetInterval


def receive_ingest(request: IngestRequest, answer: OperationOutput, outputs: OutputFolder) -> IngestResponse:
    """Take over the files of an answer and check what can be checked.

    Raises:
        EngineFailureError: The answer contradicts itself, its files or the request.
        LimitExceededError: A file is too large.
    """
    schema = answer.get_schema()
    if schema.names[:4] != list(request.vocabulary.columns) or len(set(schema.names)) != len(schema.names):
        raise EngineFailureError(f"answer.schema: expected {request.vocabulary.columns} first, found {schema.names}")
    start, end = answer.find_number("start"), answer.find_number("end")
    data_path = outputs.find(answer, "data")
    interval, found_rows = None, RowsFound()
    if (data_path is None) != (start is None) or (start is None) != (end is None):
        raise EngineFailureError("an ingest answered rows without offsets or offsets without rows")
    if data_path is not None and start is not None and end is not None:
        if start != request.next_offset or end < start:
            raise EngineFailureError(f"offsets: expected to begin at {request.next_offset}, found {start} to {end}")
        interval = OffsetInterval(start=start, end=end)
        found_rows = outputs.check(data_path, slice_check(request, schema, interval))
    watermark = request.prev_watermark
    found = find_instant(answer, "watermark_ms")
    # Milliseconds are all that crosses the sandbox; the previous one is handed on as it was stated.
    if found is not None and (watermark is None or found.unix_ms > watermark.unix_ms):
        watermark = found
    state_path, quarantine_path = outputs.find(answer, "state"), outputs.find(answer, "quarantine")
    if state_path is not None:
        outputs.check(state_path, SizeCheck(max_decoded_bytes=request.limits.decoded_bytes))
    if quarantine_path is not None:
        # Shown to people, who read it whole.
        outputs.check(quarantine_path, SizeCheck(max_decoded_bytes=request.limits.output_bytes))
    rows_out = 0 if interval is None else interval.row_count
    return IngestResponse(
        schema=schema,
        data_path=data_path,
        offset_interval=interval,
        watermark=watermark,
        state_path=state_path,
        quarantine_path=quarantine_path,
        quarantined_rows=answer.get_count("quarantined_rows"),
        statistics=Statistics(
            rows_in=answer.get_count("rows_in"),
            rows_out=rows_out,
            seconds=answer.seconds,
            stages=find_stages(request, answer),
            rows_by_operation=found_rows.operations,
        ),
        logical_hash=found_rows.logical_hash,
        quarantine_reasons=tuple(_reason(each) for each in answer.get_list("quarantine_reasons")[:MAX_REASONS]),
        quarantine_codes=dict(
            _counted(each, "quarantine_codes") for each in answer.get_list("quarantine_codes")[:MAX_CODES]
        ),
        warnings=tuple(_reason(each) for each in answer.get_list("warnings")[:MAX_REASONS]),
        batch_faults=tuple(shown(each) for each in answer.get_list("batch_faults")[:MAX_REASONS]),
        left_out_rows=answer.get_count("left_out"),
        kept_rows=answer.get_count("kept"),
        ignored_fields=dict(_counted(each, "ignored") for each in answer.get_list("ignored")[: MAX_IGNORED + 1]),
        samples=find_samples(request, answer, outputs),
    )


def find_samples(request: IngestRequest, answer: OperationOutput, outputs: OutputFolder) -> dict[str, pa.Table]:
    """Take over the first rows behind stages, where they were asked for.

    Raises:
        EngineFailureError, LimitExceededError: A file is no such, or is too large.
    """
    found: dict[str, pa.Table] = {}
    for stage in SampledStage if request.has_samples else ():
        path = outputs.find(answer, f"sample_{stage.value}")
        if path is not None:
            outputs.check(path, SizeCheck(max_decoded_bytes=request.limits.output_bytes))
            sink = io.BytesIO()
            outputs.copy(path, sink, MAX_SAMPLE_ROWS)
            found[stage] = table_of(sink.getvalue())
    return found


def find_stages(request: IngestRequest, answer: OperationOutput) -> tuple[StageMetrics, ...]:
    """Read what an answer says of stages and plug-ins, of which only those of the request can be meant (STAGE-2).

    Raises:
        EngineFailureError: It says something else.
    """
    try:
        return read_stage_metrics(answer.find("stages"), names_of(request))
    except ValueError as error:
        raise EngineFailureError(f"answer.stages: {error}") from error


def blame_plug_in(request: IngestRequest, folder: Path, error: EngineError) -> EngineError:
    """Name the plug-in that was at work when a process ended, if one was (VALID-4, CONV-4)."""
    reported = [] if request.reader is None else [f"{READER} {request.reader.name}"]
    reported += [f"{VALIDATOR} {call.name}" for call in request.validators]
    reported += [f"{CONVERTER} {call.name}" for call in request.converters]
    name = find_running(folder, frozenset(reported))
    match error:
        case LimitExceededError() if name is not None:
            return LimitExceededError(error.limit, allowed=error.allowed, found=error.found, where=name)
        case EngineFailureError() if name is not None:
            return EngineFailureError(f"{name}: {error.message}", log=error.log)
    return error


def _counted(found: object, what: str) -> tuple[str, int]:
    match found:
        case [str(word), int(rows)] if not isinstance(rows, bool) and 0 <= rows < 2**63:
            return shown(word), rows
    raise EngineFailureError(f"answer.{what}: expected words with counts of rows")


def _reason(found: object) -> QuarantineReason:
    """Read one reason; its texts are shown to people, who see it cut."""
    answer = OperationOutput(found, 0.0)
    column, value = answer.find_text("column"), answer.find_text("value")
    return QuarantineReason(
        rows=answer.get_count("rows"),
        reason=shown(answer.find_text("reason")),
        column=None if column is None else shown(column),
        value=None if value is None else shown(value),
        record=answer.find_number("record"),
        line=answer.find_number("line"),
    )


def receive_converted(request: IngestRequest, answer: OperationOutput, outputs: OutputFolder) -> PreparedRows:
    """Take over the rows that an engine converted, and those that it could not.

    Raises:
        EngineFailureError: The answer names no rows.
        LimitExceededError: A file is too large.
    """
    rows = outputs.find(answer, "rows")
    if rows is None:
        raise EngineFailureError("answer.rows: expected a file")
    outputs.check(rows, SizeCheck(max_decoded_bytes=request.limits.decoded_bytes))
    quarantine = outputs.find(answer, "quarantine")
    if quarantine is not None:
        # Shown to people, who read it whole.
        outputs.check(quarantine, SizeCheck(max_decoded_bytes=request.limits.output_bytes))
    stages = find_stages(request, answer)
    records, left_out = answer.get_count("records"), answer.get_count("left_out")
    samples = find_samples(request, answer, outputs)
    return PreparedRows(
        rows=rows, quarantine=quarantine, records=records, left_out=left_out, stages=stages, samples=samples
    )


def receive_preprocessed(
    _request: Any, answer: OperationOutput, outputs: OutputFolder, *, limits: Limits
) -> QueryResponse:
    """Take over what a query made of them; errors as ``receive_query``."""
    return receive_result(answer, outputs, limits, max_decoded_bytes=limits.decoded_bytes)
