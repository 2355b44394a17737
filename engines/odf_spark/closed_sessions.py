"""One step of a query that groups by sessions in event time: the sessions that the step's watermarks close.

How far a session reaches depends on the rows around it, so one that was given could be made longer by a row that comes
later. Therefore every row that is older than the watermark known before its block is late. What is left lies
behind the end of every session that is closed, and belongs to none of them: sessions follow from the input's chain
alone, and a step needs no state. A row whose time is the end of a session still joins it, so what closes a session is
a watermark after its end.

Source: clauses WINDOW-4 and WINDOW-8 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from odf_engines.contract import Lookback, TransformInput, TransformRequest
from odf_protocol.schema_spark import quote_spark_name
from odf_protocol.timestamp import Timestamp
from odf_spark.arrivals import MIN_US, all_arrivals, highest_watermark, new_arrivals, unix_us
from odf_spark.as_of_join import late_versions, versions_at
from odf_spark.chunks import iter_appended
from odf_spark.fixed_order import unspilled
from odf_spark.folded_rows import folded_rows
from odf_spark.known_transforms import KnownSessions
from odf_spark.small_inputs import Work
from odf_spark.steps import compute_steps

_PER_MS = 1000


def iter_closed_sessions(
    spark: SparkSession, request: TransformRequest, known: KnownSessions, work: Work
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the rows of the sessions that close in a step, in their order, all of them appended.

    Arguments are those of ``iter_changes`` of maintained views; inputs have their earlier watermarks, too.

    Raises:
        PySparkException, LimitExceededError: The query failed on a row; or its order rests on more than memory holds.
    """
    after_us, until_us = _closed(request, known, is_before=True), _closed(request, known, is_before=False)
    if until_us is None or (after_us is not None and until_us <= after_us):
        return
    rows = {each.alias: _counting(spark, each, known, until_us, work) for each in request.inputs}
    result = compute_steps(spark, known.steps, rows)
    end = f"unix_micros({quote_spark_name(request.vocabulary.event_time)})"
    ends_after = MIN_US if after_us is None else after_us
    closed = result.where(f"{end} >= {ends_after}L AND {end} < {until_us}L")
    closed = closed.toDF(*(f"v{position}" for position in range(len(result.columns))))
    with unspilled(spark, matters=known.depends_on_order):
        yield from iter_appended(closed, known.result.names, request.limits.output_rows)


def list_lookbacks(known: KnownSessions) -> dict[str, Lookback]:
    """Return which rows before a step can be part of sessions that it closes, or are joined with them (WINDOW-11)."""
    inputs, gap_us = known.sessions.inputs, known.sessions.gap_us
    if gap_us is None:
        return {}
    # Rows of several inputs are put together by position, whatever they are called.
    is_one = sum(below.is_cut for below in inputs.values()) == 1
    return {
        alias: Lookback(
            waits_for=dict.fromkeys(inputs, 0),
            behind_us=gap_us,
            follows_us=gap_us,
            alike=known.alike.get(alias, ()) if is_one and below.is_cut else (),
            newest_by=known.tables[alias] if below.is_version else None,
        )
        for alias, below in inputs.items()
    }


def count_late_rows(request: TransformRequest, known: KnownSessions, work: Work) -> int:
    """Count the rows of a step that are older than the watermark known before their blocks (WINDOW-8)."""
    return sum(
        len(late_versions(new_arrivals(each, work)) if below.is_version else new_arrivals(each, work).late_offsets)
        for each in request.inputs
        if (below := known.sessions.inputs.get(each.alias)) is not None
    )


def promised_watermark(request: TransformRequest, known: KnownSessions) -> Timestamp | None:
    """Return the watermark after a step: sessions given later do not end before it (WINDOW-6)."""
    until_us = _closed(request, known, is_before=False)
    stated = (request.prev_watermark, None if until_us is None else Timestamp.from_unix_ms(until_us // _PER_MS))
    return max((each for each in stated if each is not None), default=None)


def _closed(request: TransformRequest, known: KnownSessions, *, is_before: bool) -> int | None:
    """Return the lowest watermark of the inputs before a step or after it, in microseconds; None: one has none."""
    sources = [each for each in request.inputs if each.alias in known.sessions.inputs]
    marks = [each.prev_watermark if is_before else highest_watermark(each) for each in sources]
    stated = [unix_us(each) for each in marks if each is not None]
    return min(stated) if len(stated) == len(marks) else None


def _counting(
    spark: SparkSession, source: TransformInput, known: KnownSessions, until_us: int, work: Work
) -> DataFrame:
    """Return the rows of an input that count for sessions which end before a watermark."""
    since_us = MIN_US if source.earlier_since_us is None else source.earlier_since_us
    below = known.sessions.inputs.get(source.alias)
    in_order = known.depends_on_order
    if below is not None and below.is_version:
        times = since_us, until_us
        return versions_at(spark, source, known.tables[source.alias], times, work, in_content_order=in_order)
    last = source.last_offset
    return folded_rows(
        spark,
        source,
        None if below is None else last,
        in_content_order=in_order,
        event_times_us=(since_us, until_us),
        without=all_arrivals(source, work).late_offsets,
        work=work,
    )
