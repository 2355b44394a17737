"""One step of a query that groups by a window in event time: the windows that the step's watermarks close.

A window is closed by the first watermark at or after its end. What counts for it are the rows in force when the block
came that stated this watermark; a row of a later block is too late for it. Both follow from the input's chain alone, so
a step needs no state, and cutting the input into other steps changes nothing.

Source: clauses WINDOW-2 to WINDOW-7 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_engines.contract import TransformInput, TransformRequest
from odf_engines.spark.arrivals import LEAST_US, Arrivals, highest_watermark, new_arrivals, rising, unix_us
from odf_engines.spark.changelog import APPEND
from odf_engines.spark.fixed_order import unspilled
from odf_engines.spark.folded_rows import folded_rows
from odf_engines.spark.gate.event_windows import EventWindow
from odf_engines.spark.known_transforms import KnownWindows
from odf_engines.spark.pieces import bound_rows, collect_pieces
from odf_engines.spark.small_inputs import Work
from odf_engines.spark.steps import compute_steps
from odf_protocol.schema_spark import quote_spark_name
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["count_late_rows", "iter_closed", "promised_watermark"]

_PER_MS = 1000


@dataclass(frozen=True, slots=True)
class _Closing:
    """Windows that close together.

    Attributes:
        after_us: They end after this,
        until_us: and not after this.
        upto: Last offset of the rows that count for them.
    """

    after_us: int
    until_us: int
    upto: int


def iter_closed(
    spark: "SparkSession", request: TransformRequest, known: KnownWindows, work: Work
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the rows of the windows that close in a step, in their order, all of them appended.

    Args:
        spark: A session of this request's own.
        request: With the earlier slices of its one input.
        known: The query.
        work: Of this request.

    Raises:
        PySparkException, LimitExceededError: The query failed on a row; or its order rests on more than memory holds.
    """
    source = request.inputs[0]
    results = []
    for closing in _closings(source, known.window):
        first_us = closing.after_us - known.window.size_us
        rows = folded_rows(
            spark,
            source,
            closing.upto,
            in_content_order=known.depends_on_order,
            event_times_us=(first_us, closing.until_us),
            work=work,
        )
        result = compute_steps(spark, known.steps, {source.alias: rows})
        shown = f"unix_micros({quote_spark_name(request.vocabulary.event_time)})"
        end = shown if known.window.shows_end else f"{shown} + {known.window.size_us}L"
        closed = result.where(f"{end} > {closing.after_us}L AND {end} <= {closing.until_us}L")
        results.append(closed.toDF(*(f"v{position}" for position in range(len(result.columns)))))
    if not results:
        return
    rows = results[0]
    for more in results[1:]:
        rows = rows.unionAll(more)
    with unspilled(spark, matters=known.depends_on_order):
        pieces = collect_pieces(rows.orderBy(*rows.columns), rows.schema)
        for piece in bound_rows(pieces, request.limits.output_rows):
            if piece.num_rows:
                yield piece.rename_columns(known.result.names), np.full(piece.num_rows, APPEND, dtype=np.int64)


def count_late_rows(source: TransformInput, window: EventWindow) -> int:
    """Count the rows of a step that came when a window they belong to was closed (WINDOW-5)."""
    return int(np.count_nonzero(_are_late(new_arrivals(source), window)))


def promised_watermark(request: TransformRequest, window: EventWindow) -> Timestamp | None:
    """Return the watermark after a step: no row of a later step is older, and it never goes back (WINDOW-6)."""
    newest = highest_watermark(request.inputs[0])
    if newest is None:
        return request.prev_watermark
    promised = newest if window.shows_end else Timestamp.from_unix_ms(newest.unix_ms - -(-window.size_us // _PER_MS))
    return promised if request.prev_watermark is None else max(promised, request.prev_watermark)


def _closings(source: TransformInput, window: EventWindow) -> Iterator[_Closing]:
    """Cut the windows that close in a step into those for which the same rows count.

    Where no row is late, that is all of them: the rows after a watermark do not belong to the windows it closes. So a
    cut is needed only before rows that are late.
    """
    rows = new_arrivals(source)
    late = rows.offsets[_are_late(rows, window)]
    closed = None if source.prev_watermark is None else unix_us(source.prev_watermark)
    marks = rising(source.watermarks, closed)
    for position, mark in enumerate(marks):
        until = unix_us(mark.event_time)
        if mark.last_offset is None:
            closed = until  # of windows that closed before the first row nothing is ever given
            continue
        following = marks[position + 1].last_offset if position + 1 < len(marks) else _end_of(source)
        is_last = position + 1 == len(marks)
        if not is_last and not np.any((late > mark.last_offset) & (late <= (following or 0))):
            continue  # what comes until the next watermark is not late for what this one closes
        yield _Closing(LEAST_US if closed is None else closed, until, mark.last_offset)
        closed = until


def _end_of(source: TransformInput) -> int | None:
    return source.prev_offset if source.offset_interval is None else source.offset_interval.end


def _are_late(rows: Arrivals, window: EventWindow) -> npt.NDArray[np.bool_]:
    since_start = (rows.times_us - window.start_us) % window.slide_us
    latest_start = rows.times_us - since_start
    earlier = (window.size_us - since_start - 1) // window.slide_us  # windows that began before the latest one
    earliest_end = latest_start - earlier * window.slide_us + window.size_us
    found: npt.NDArray[np.bool_] = (since_start < window.size_us) & (earliest_end <= rows.known_us)
    return found
