"""One step of a query that groups by a window in event time: the windows that the step's watermarks close.

A window is closed for an input by the first watermark at or after its end, and as much later as rows of that input may
count for it. What counts are the current rows when the block came that stated this watermark; a row of a later block
is too late for it. A window that is closed for all inputs is given. All of this follows from the chains of the inputs,
each by itself, so a step needs no state, and cutting the inputs into other steps changes nothing.

Source: clauses WINDOW-2 to WINDOW-7 and WINDOW-9 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from odf_engines.contract import Lookback, TransformInput, TransformRequest
from odf_protocol.schema_spark import quote_spark_name
from odf_protocol.timestamp import Timestamp
from odf_spark.arrivals import (
    MIN_US,
    StepArrivals,
    all_arrivals,
    highest_watermark,
    new_arrivals,
    rising,
    unix_us,
)
from odf_spark.as_of_join import late_versions, versions_at
from odf_spark.chunks import iter_appended
from odf_spark.fixed_order import unspilled
from odf_spark.folded_rows import folded_rows
from odf_spark.gate.event_windows import EventWindow
from odf_spark.gate.window_inputs import InputBelow
from odf_spark.known_transforms import KnownWindows
from odf_spark.maintained_view import make_ready
from odf_spark.small_inputs import Work
from odf_spark.steps import compute_steps

_PER_MS = 1000


@dataclass(frozen=True, slots=True)
class _Closing:
    """Windows that close together.

    Attributes:
        after_us: They end after this,
        until_us: and not after this.
        upto: Last offset of the rows of each input that count for them, by alias; None for none.
    """

    after_us: int
    until_us: int
    upto: Mapping[str, int | None]


def iter_closed(
    spark: SparkSession, request: TransformRequest, known: KnownWindows, work: Work
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the rows of the windows that close in a step, in their order, all of them appended.

    Arguments are those of ``iter_changes`` of maintained views; inputs have their earlier watermarks, too.

    Raises:
        PySparkException, LimitExceededError: The query failed on a row; or its order rests on more than memory holds.
    """
    results = []
    make_ready(spark, request, in_one_order=known.depends_on_order)
    for closing in _closings(request, known.window, work):
        rows = {each.alias: _counting(spark, each, known, closing, work) for each in request.inputs}
        result = compute_steps(spark, known.steps, rows)
        shown = f"unix_micros({quote_spark_name(request.vocabulary.event_time)})"
        end = shown if known.window.shows_end else f"{shown} + {known.window.size_us}L"
        closed = result.where(f"{end} > {closing.after_us}L AND {end} <= {closing.until_us}L")
        results.append(closed.toDF(*(f"v{position}" for position in range(len(result.columns)))))
    if not results:
        return
    rows_out = results[0]
    for more in results[1:]:
        rows_out = rows_out.unionAll(more)
    with unspilled(spark, matters=known.depends_on_order):
        yield from iter_appended(rows_out, known.result.names, request.limits.output_rows)


def list_lookbacks(known: KnownWindows) -> dict[str, Lookback]:
    """Return which rows before a step can count for the windows that it closes (WINDOW-10, ASOF-11)."""
    window = known.window
    delays = {alias: below.delay_us for alias, below in window.inputs.items()}
    return {
        alias: Lookback(
            waits_for=delays,
            behind_us=window.size_us + (below.behind_us or 0),
            newest_by=known.tables[alias] if below.is_version else None,
        )
        for alias, below in window.inputs.items()
        if below.is_version or below.behind_us is not None
    }


def count_late_rows(request: TransformRequest, known: KnownWindows, work: Work) -> int:
    """Count the rows of a step that came when a window they belong to was closed for their input (WINDOW-5, 9)."""
    return sum(
        late_versions(new_arrivals(each, work)).size
        if known.window.inputs[each.alias].is_version
        else int(np.count_nonzero(_are_late(new_arrivals(each, work), known.window, each.alias)))
        for each in request.inputs
        if each.alias in known.window.inputs
    )


def promised_watermark(request: TransformRequest, window: EventWindow) -> Timestamp | None:
    """Return the watermark after a step: no row of a later step is older, and it never goes back (WINDOW-6)."""
    newest = _closed_until(request, window, [highest_watermark(each) for each in request.inputs])
    if newest is None:
        return request.prev_watermark
    shown = newest if window.shows_end else newest - window.size_us
    promised = Timestamp.from_unix_ms(shown // _PER_MS)
    return promised if request.prev_watermark is None else max(promised, request.prev_watermark)


def _counting(
    spark: SparkSession, source: TransformInput, known: KnownWindows, closing: _Closing, work: Work
) -> DataFrame:
    """Return the rows of an input that count for the windows of a closing."""
    below = known.window.inputs.get(source.alias)
    first_us = closing.after_us - known.window.size_us
    in_order = known.depends_on_order
    if below is not None and below.is_version:
        times = first_us, closing.until_us
        return versions_at(spark, source, known.tables[source.alias], times, work, in_content_order=in_order)
    return folded_rows(
        spark,
        source,
        closing.upto.get(source.alias),
        in_content_order=in_order,
        event_times_us=_counting_times(below, first_us, closing.until_us) if below is not None else None,
        work=work,
    )


def _counting_times(below: InputBelow, first_us: int, until_us: int) -> tuple[int, int] | None:
    """Return the first event time that counts for windows between two times, and the first that is too late."""
    # Rows that are joined may be later than the window, by their delay and no more.
    return None if below.behind_us is None else (first_us - below.behind_us, until_us + below.delay_us + 1)


def _closed_until(request: TransformRequest, window: EventWindow, reached: Sequence[Timestamp | None]) -> int | None:
    """Return up to which end windows are closed, in microseconds, by watermarks of the inputs; None: none is."""
    ends = [
        None if mark is None else unix_us(mark) - window.inputs[each.alias].delay_us
        for each, mark in zip(request.inputs, reached, strict=True)
        if each.alias in window.inputs
    ]
    known = [each for each in ends if each is not None]
    return min(known) if len(known) == len(ends) else None


def _closings(request: TransformRequest, window: EventWindow, work: Work) -> Iterator[_Closing]:
    """Cut the windows that close in a step into those for which the same rows count."""
    before = _closed_until(request, window, [each.prev_watermark for each in request.inputs])
    until = _closed_until(request, window, [highest_watermark(each) for each in request.inputs])
    after = MIN_US if before is None else before
    if until is None or until <= after:
        return
    sources = [
        each for each in request.inputs if each.alias in window.inputs and not window.inputs[each.alias].is_version
    ]
    ranges = {each.alias: [*_iter_ranges(each, window, after, work)] for each in sources}
    ends = {end for found in ranges.values() for end, _ in found if after < end < until}
    for end in sorted({*ends, until}):
        upto = {alias: next(offset for last, offset in found if last >= end) for alias, found in ranges.items()}
        if any(offset is not None for offset in upto.values()):
            yield _Closing(after, end, upto)
        after = end


def _iter_ranges(
    source: TransformInput, window: EventWindow, after_us: int, work: Work
) -> Iterator[tuple[int, int | None]]:
    """Yield the ends of windows up to which the same rows of an input count, and the last offset of these.

    Where no row is late, that is all of them: the rows after a watermark do not belong to the windows it closes. So a
    cut is needed only before rows that are late.
    """
    delay_us = window.inputs[source.alias].delay_us
    was_behind = source.prev_watermark is None or unix_us(source.prev_watermark) - delay_us <= after_us
    # Where another input held windows open, rows of earlier steps say what counts for them as well.
    rows = new_arrivals(source, work) if was_behind else all_arrivals(source, work)
    late = rows.offsets[_are_late(rows, window, source.alias)]
    marks = rising((*source.earlier_watermarks, *source.watermarks), None)
    for position, mark in enumerate(marks):
        end = unix_us(mark.event_time) - delay_us
        is_last = position + 1 == len(marks)
        if end <= after_us and not is_last:
            continue
        if not is_last:
            following = marks[position + 1].last_offset
            first = -1 if mark.last_offset is None else mark.last_offset
            if not np.any((late > first) & (late <= (-1 if following is None else following))):
                continue  # what comes until the next watermark is not late for what this one closes
        yield end, mark.last_offset


def _are_late(rows: StepArrivals, window: EventWindow, alias: str) -> npt.NDArray[np.bool_]:
    is_behind: npt.NDArray[np.bool_] = rows.times_us < rows.known_us
    if not window.inputs[alias].is_cut:
        # Rows that are joined may count for any later window, so for all that are not closed yet.
        return is_behind
    # A window ends behind each of its rows, so none is closed for a row that is not behind a watermark.
    (places,) = np.nonzero(is_behind)
    times = rows.times_us[places]
    since_start = (times - window.start_us) % window.slide_us
    earlier = (window.size_us - since_start - 1) // window.slide_us  # windows that began before the latest one
    earliest_end = times - since_start - earlier * window.slide_us + window.size_us
    found = np.zeros(len(is_behind), dtype=np.bool_)
    found[places] = (since_start < window.size_us) & (earliest_end <= rows.known_us[places])
    return found
