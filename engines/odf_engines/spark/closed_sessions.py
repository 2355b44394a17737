"""One step of a query that groups by sessions in event time: the sessions that the step's watermarks close.

How far a session reaches depends on the rows around it, so one that was given could be made longer by a row that comes
later. Therefore every row that is older than the watermark known before its block is late. What is left lies
behind the end of every session that is closed, and belongs to none of them: sessions follow from the input's chain
alone, and a step needs no state. A row whose time is the end of a session still joins it, so what closes a session is
a watermark after its end.

Source: clauses WINDOW-4 and WINDOW-8 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_engines.contract import TransformInput, TransformRequest
from odf_engines.spark.arrivals import LEAST_US, all_arrivals, highest_watermark, new_arrivals, rising, unix_us
from odf_engines.spark.changelog import APPEND
from odf_engines.spark.fixed_order import unspilled
from odf_engines.spark.folded_rows import folded_rows
from odf_engines.spark.known_transforms import KnownSessions
from odf_engines.spark.pieces import bound_rows, collect_pieces
from odf_engines.spark.small_inputs import Work
from odf_engines.spark.steps import compute_steps
from odf_protocol.schema_spark import quote_spark_name
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["count_late_rows", "iter_closed_sessions", "promised_watermark"]


def iter_closed_sessions(
    spark: "SparkSession", request: TransformRequest, known: KnownSessions, work: Work
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the rows of the sessions that close in a step, in their order, all of them appended.

    Args:
        spark: A session of this request's own.
        request: With the earlier slices and watermarks of its one input.
        known: The query.
        work: Of this request.

    Raises:
        PySparkException, LimitExceededError: The query failed on a row; or its order rests on more than memory holds.
    """
    source = request.inputs[0]
    closed_us = None if source.prev_watermark is None else unix_us(source.prev_watermark)
    marks = [mark for mark in rising(source.watermarks, closed_us) if mark.last_offset is not None]
    if not marks or marks[-1].last_offset is None:
        return
    until_us = unix_us(marks[-1].event_time)
    rows = folded_rows(
        spark,
        source,
        marks[-1].last_offset,
        in_content_order=known.depends_on_order,
        event_times_us=(LEAST_US, until_us),
        without=all_arrivals(source).late_offsets,
        work=work,
    )
    result = compute_steps(spark, known.steps, {source.alias: rows})
    end = f"unix_micros({quote_spark_name(request.vocabulary.event_time)})"
    after_us = LEAST_US if closed_us is None else closed_us
    closed = result.where(f"{end} >= {after_us}L AND {end} < {until_us}L")
    closed = closed.toDF(*(f"v{position}" for position in range(len(result.columns))))
    with unspilled(spark, matters=known.depends_on_order):
        pieces = collect_pieces(closed.orderBy(*closed.columns), closed.schema)
        for piece in bound_rows(pieces, request.limits.output_rows):
            if piece.num_rows:
                yield piece.rename_columns(known.result.names), np.full(piece.num_rows, APPEND, dtype=np.int64)


def count_late_rows(source: TransformInput) -> int:
    """Count the rows of a step that are older than the watermark known before their blocks (WINDOW-8)."""
    return len(new_arrivals(source).late_offsets)


def promised_watermark(request: TransformRequest) -> Timestamp | None:
    """Return the watermark after a step: sessions given later do not end before it (WINDOW-6)."""
    stated = (request.prev_watermark, highest_watermark(request.inputs[0]))
    return max((each for each in stated if each is not None), default=None)
