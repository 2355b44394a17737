"""One step of a maintained view over joins as of event times: groups, further joins, anything above or below them.

Such a join gives the rows whose time the watermark of the temporal table has reached, with the versions that count for
it. That is a function of the chains of the inputs, as rows in force are, so a query over it is a view like any other:
its results after and before the step are computed, and the difference is given.

Source: clause ASOF-9 in ``spec/extensions/as-of-joins.md``.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from odf_engines.contract import TransformInput, TransformRequest
from odf_engines.spark.arrivals import LEAST_US, highest_watermark, unix_us
from odf_engines.spark.as_of_join import versions_at
from odf_engines.spark.folded_rows import folded_rows
from odf_engines.spark.known_transforms import KnownAsOfView
from odf_engines.spark.maintained_view import iter_differences
from odf_engines.spark.small_inputs import Work
from odf_engines.spark.steps import ParsedStep, compute_steps, reach_steps


def iter_answer_changes(
    spark: SparkSession, request: TransformRequest, known: KnownAsOfView, work: Work, piece_rows: int
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the rows of one step, in their order, and the operation of each.

    Args:
        spark: A session of this request's own.
        request: With the earlier slices and watermarks of all inputs.
        known: The view.
        work: Of this request.
        piece_rows: Rows of a table at most.

    Raises:
        PySparkException, LimitExceededError: See ``iter_changes`` of maintained views.
    """
    parsed: dict[tuple[int | None, ...], tuple[ParsedStep, ...]] = {}

    def compute(inputs: Sequence[TransformInput], ends: Sequence[int | None]) -> DataFrame:
        reached = {each.alias: _reached(each) for each in inputs if each.alias in known.tables}
        rows = {
            each.alias: _rows(spark, known, each, end, reached, work) for each, end in zip(inputs, ends, strict=True)
        }
        # What is reached stands in the plan, so that a step with a watermark has another one before it and after it.
        times = tuple(reached.values())
        if times not in parsed:
            parsed[times] = reach_steps(spark, request.transform, known.view.steps, rows, reached)
        return compute_steps(spark, parsed[times], rows)

    yield from iter_differences(spark, request, known.view, work, piece_rows, compute)


def _rows(
    spark: SparkSession,
    known: KnownAsOfView,
    each: TransformInput,
    end: int | None,
    reached: Mapping[str, int | None],
    work: Work,
) -> DataFrame:
    in_order = known.view.depends_on_order
    if each.alias not in known.tables:
        return folded_rows(spark, each, end, in_content_order=in_order, work=work)
    last_us = reached[each.alias]
    times = LEAST_US, LEAST_US if last_us is None else last_us
    return versions_at(spark, each, known.tables[each.alias], times, work, in_content_order=in_order)


def _reached(table: TransformInput) -> int | None:
    newest = highest_watermark(table)
    return None if newest is None else unix_us(newest)
