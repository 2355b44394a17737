"""Turning the untrusted answers of the operations transform, check and query into responses.

Source: clauses ENGINE-5 and ENGINE-6 in ``spec/extensions/engine-contract.md``; spec/query.md QUERY-5.
"""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from odf_engines.contract import (
    MAX_STAGES,
    Finding,
    Grade,
    GradeLevel,
    IngestRequest,
    Limits,
    Lookback,
    QueryRequest,
    QueryResponse,
    Statistics,
    TransformClass,
    TransformInput,
    TransformRequest,
    TransformResponse,
)
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.output_checks import RowsCheck, RowsFound, SizeCheck
from odf_engines.host.outputs import OperationOutput, OutputFolder
from odf_protocol.errors import MalformedError
from odf_protocol.events import OffsetInterval
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary


def slice_check(request: TransformRequest | IngestRequest, schema: "pa.Schema", interval: OffsetInterval) -> RowsCheck:
    """Say what the slice of an answer has to be."""
    return RowsCheck(
        schema=schema,
        vocabulary=request.vocabulary,
        interval=interval,
        system_time_ms=request.system_time.unix_ms,
        max_rows=request.limits.output_rows,
        max_decoded_bytes=request.limits.decoded_bytes,
    )


def receive_transform(
    request: TransformRequest, answer: OperationOutput, outputs: OutputFolder, *, counts_rows: bool = True
) -> TransformResponse:
    """Check the answer to a transform.

    Raises:
        EngineFailureError, LimitExceededError: It is not what the contract says.
    """
    schema = answer.get_schema()
    check_system_columns(schema, request.vocabulary)
    rows = answer.get_count("rows_out")
    data_path = outputs.find(answer, "data")
    if (data_path is None) != (rows == 0):
        raise EngineFailureError(f"answer says {rows} rows and names {data_path or 'no file'}")
    rows_read = _check_rows_read(request, answer, is_counted=counts_rows)
    interval, found = None, RowsFound()
    if data_path is not None:
        interval = OffsetInterval(start=request.next_offset, end=request.next_offset + rows - 1)
        found = outputs.check(data_path, slice_check(request, schema, interval))
    watermark = find_instant(answer, "watermark_ms")
    stated = [mark.event_time for each in request.inputs for mark in each.watermarks]
    if request.prev_watermark is not None:
        stated.append(request.prev_watermark)
        if watermark is None or watermark < request.prev_watermark.truncated_to_ms():
            raise EngineFailureError(f"watermark went back: expected {request.prev_watermark}, found {watermark}")
    # Milliseconds are all that crosses the sandbox; the stated one is handed on as it was stated.
    watermark = next(
        (mark for mark in stated if watermark is not None and mark.unix_ms == watermark.unix_ms), watermark
    )
    return TransformResponse(
        schema=schema,
        data_path=data_path,
        offset_interval=interval,
        watermark=watermark,
        checkpoint_path=outputs.find(answer, "checkpoint"),
        statistics=Statistics(
            rows_in=sum(count or 0 for count in rows_read),
            rows_out=rows,
            late_rows=answer.get_count("late_rows"),
            seconds=answer.seconds,
            rows_by_input=rows_read,
            rows_by_operation=found.operations,
        ),
        logical_hash=found.logical_hash,
        is_ordered=answer.find("is_ordered") is not False,
    )


def _check_rows_read(request: TransformRequest, answer: OperationOutput, *, is_counted: bool) -> tuple[int | None, ...]:
    """Check that the engine read each input whole, as it counted itself; say how many rows of each (ENGINE-27).

    Of an engine whose contract has no word for it, nobody knows.

    Raises:
        EngineFailureError: It read anything but the interval that was asked for.
    """
    reported = answer.get_list("inputs")
    if len(reported) != len(request.inputs):
        raise EngineFailureError(f"answer.inputs: expected {len(request.inputs)}, found {len(reported)}")
    counts: list[int | None] = []
    for asked, read in zip(request.inputs, reported, strict=True):
        if not is_counted and read is None:
            counts.append(None)
            continue
        intervals = _intervals_to_read(asked)
        count = sum(each.row_count for each in intervals)
        first = min((each.start for each in intervals), default=None)
        last = max((each.end for each in intervals), default=None)
        if read != {"rows": count, "first": first, "last": last}:
            wanted = f"{count} rows, offsets {first} to {last}" if count else "no rows"
            raise EngineFailureError(f"input '{asked.alias}': asked for {wanted}, the engine read {_describe(read)}")
        counts.append(count)
    return tuple(counts)


def _intervals_to_read(asked: TransformInput) -> list[OffsetInterval]:
    """Return the offsets that a step has to read: what is new, and of what was before it all that is handed over."""
    intervals = [] if asked.offset_interval is None else [asked.offset_interval]
    if asked.earlier_slices and asked.prev_offset is not None:
        last = asked.prev_offset
        earlier = asked.earlier_intervals or (OffsetInterval(start=0, end=last),)
        intervals += [OffsetInterval(start=each.start, end=min(each.end, last)) for each in earlier]
    return intervals


def _describe(read: Any) -> str:
    match read:
        case {"rows": int(rows), "first": int(first), "last": int(last)}:
            return f"{rows} rows with offsets from {first} to {last}"
        case {"rows": 0}:
            return "none"
    return "what it does not say"


def receive_grade(_request: Any, answer: OperationOutput, _outputs: OutputFolder) -> Grade:
    """Check the answer to a check.

    Raises:
        EngineFailureError: It is not what the contract says.
    """
    level = answer.find_text("level")
    if level not in set(GradeLevel):
        raise EngineFailureError(f"answer.level: no such grade: {level!r}")
    findings = tuple(_finding(item) for item in answer.get_list("findings"))
    schema = None if answer.find_text("schema") is None else answer.get_schema()
    obstacle = answer.find("obstacle")
    kind = answer.find_text("class")
    if kind not in {None, *TransformClass}:
        raise EngineFailureError(f"answer.class: no such class: {kind!r}")
    follows = answer.find("follows_watermarks")
    if not (follows is None or isinstance(follows, bool)):
        raise EngineFailureError(f"answer.follows_watermarks: expected true or false, found {follows!r}")
    return Grade(
        level=GradeLevel(level),
        findings=findings,
        transform_class=None if kind is None else TransformClass(kind),
        schema=schema,
        obstacle=None if obstacle is None else _finding(obstacle),
        stages=_texts(answer.find("stages"), "stages")[:MAX_STAGES],
        key=None if answer.find("key") is None else _texts(answer.find("key"), "key"),
        lookbacks=_lookbacks(answer.find("lookbacks")),
        follows_watermarks=follows,
        time_columns=() if answer.find("time_columns") is None else _texts(answer.find("time_columns"), "time_columns"),
    )


def _lookbacks(found: Any) -> dict[str, Lookback]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise EngineFailureError("answer.lookbacks: expected them by alias")
    return {str(alias): _lookback(each) for alias, each in found.items()}


def _lookback(item: Any) -> Lookback:
    match item:
        case {
            "waits_for": dict(delays),
            "behind_us": int(behind_us),
            "meets_new": bool(meets_new),
            "follows_us": int() | None as follows_us,
            "alike": list() as alike,
            "newest_by": list() | None as newest_by,
            "asked_by": list() as asked_by,
        } if all(isinstance(each, int) and each >= 0 for each in (behind_us, follows_us or 0, *delays.values())):
            return Lookback(
                waits_for=delays,
                behind_us=behind_us,
                meets_new=meets_new,
                follows_us=follows_us,
                alike=_texts(alike, "lookbacks"),
                newest_by=None if newest_by is None else _texts(newest_by, "lookbacks"),
                asked_by=_texts(asked_by, "lookbacks"),
            )
    raise EngineFailureError("answer.lookbacks: expected delays of inputs and microseconds, none below 0")


def _texts(values: Any, name: str) -> tuple[str, ...]:
    """Read a list of texts; None stands for none of them."""
    if values is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise EngineFailureError(f"answer.{name}: expected texts")
    return tuple(values)


def _finding(item: Any) -> Finding:
    match item:
        case {"expression": str(expression), "reason": str(reason), "rewrite": str(rewrite)}:
            return Finding(expression=expression, reason=reason, rewrite=rewrite)
    raise EngineFailureError("answer: expected expression, reason and rewrite")


def find_instant(answer: OperationOutput, name: str) -> Timestamp | None:
    """Read milliseconds since 1970 as a time."""
    unix_ms = answer.find_number(name)
    if unix_ms is None:
        return None
    try:
        return Timestamp.from_unix_ms(unix_ms)
    except MalformedError as error:
        raise EngineFailureError(f"answer.{name}: {error}") from error


def check_system_columns(schema: "pa.Schema", vocabulary: Vocabulary) -> None:
    """Check that a schema starts with the four system columns, of the right types, and names no column twice.

    Raises:
        EngineFailureError: It does not.
    """
    if schema.names[:4] != list(vocabulary.columns) or len(set(schema.names)) != len(schema.names):
        raise EngineFailureError(f"answer.schema: expected {vocabulary.columns} first, found {schema.names[:8]}")
    instant = pa.timestamp("ms", "UTC")
    expected = (pa.int64(), pa.int32(), instant)
    for position, kind in enumerate(expected):
        if schema.types[position] != kind or schema.field(position).nullable:
            raise EngineFailureError(f"answer.schema: expected {kind} not null, found {schema.field(position)}")
    if schema.types[3] not in (instant, pa.date32()):
        raise EngineFailureError(f"answer.schema: event time is {schema.types[3]}")


def receive_query(request: QueryRequest, answer: OperationOutput, outputs: OutputFolder) -> QueryResponse:
    """Take over the file of an answer and check that it is what the answer says.

    Raises:
        EngineFailureError: It is not.
        LimitExceededError: It is too large.
    """
    # Whoever asked reads the answer whole.
    response = receive_result(answer, outputs, request.limits, max_decoded_bytes=request.limits.output_bytes)
    if request.max_rows is not None and response.rows > request.max_rows:
        raise EngineFailureError(f"a query answered {response.rows} rows where {request.max_rows} were asked for")
    rows_path = response.result_path.with_suffix(".arrows")
    with rows_path.open("xb") as file:
        outputs.copy(response.result_path, file)
    return replace(response, rows_path=rows_path)


def receive_result(
    answer: OperationOutput, outputs: OutputFolder, limits: Limits, *, max_decoded_bytes: int
) -> QueryResponse:
    """Take over what a query gave; errors as ``receive_query``."""
    schema, rows = answer.get_schema(), answer.get_count("rows")
    path = outputs.find(answer, "result")
    if path is None:
        raise EngineFailureError("a query answered no file")
    if rows > limits.output_rows:
        raise LimitExceededError("output_rows", allowed=limits.output_rows, found=rows)
    outputs.check(path, SizeCheck(max_decoded_bytes=max_decoded_bytes, schema=schema, rows=rows))
    return QueryResponse(result_path=path, schema=schema, rows=rows)
