"""One step of a query that joins rows of one input, its probes, with others as of their event time.

A probe is answered when every temporal table has stated a watermark at or after its time. What counts of such a table
are the current rows at the first block that did: the answer for a time never changes, and follows from the chains
alone, whichever of them came first. So the answers for all probes that can be answered are a function of their rows,
and a step gives the difference between those after it and those before it: what is retracted or corrected among the
probes, however late, is retracted or corrected in the output.

These answers are a function of the chains of the inputs, as current rows are. So groups, further joins and anything
else above or below such a join make a view like any other, whose results after and before the step are compared.

Source: clauses ASOF-2 to ASOF-9 in ``spec/extensions/as-of-joins.md``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit
from pyspark.sql.functions import sum as total

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
from odf_spark.folded_rows import folded_rows, order_by_content, with_versions
from odf_spark.gate.temporal_joins import FROM, UNTIL
from odf_spark.known_transforms import KnownAsOf, KnownAsOfView
from odf_spark.maintained_view import changes_between, iter_differences, iter_operations, make_ready
from odf_spark.small_inputs import Work
from odf_spark.steps import ParsedStep, compute_steps, reach_steps


def iter_answer_changes(
    spark: SparkSession, request: TransformRequest, known: KnownAsOfView, work: Work, chunk_rows: int
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the rows of one step, in their order, and the operation of each.

    Arguments and errors are those of ``iter_changes`` of maintained views; inputs have their earlier watermarks, too.
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

    yield from iter_differences(spark, request, known.view, work, chunk_rows, compute)


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
    times = MIN_US, MIN_US if last_us is None else last_us
    return versions_at(spark, each, known.tables[each.alias], times, work, in_content_order=in_order)


def _reached(table: TransformInput) -> int | None:
    newest = highest_watermark(table)
    return None if newest is None else unix_us(newest)


_COUNT = "\0count"


@dataclass(frozen=True, slots=True)
class _Probes:
    """Rows of which a step changes the answers.

    Attributes:
        rows: With a count, which is below 0 for rows that are taken.
        first_us: The earliest event time.
        last_us: The latest one.
        are_taken: Whether some are.
    """

    rows: DataFrame
    first_us: int
    last_us: int
    are_taken: bool


def iter_answers(
    spark: SparkSession, request: TransformRequest, known: KnownAsOf, work: Work, chunk_rows: int
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Yield the answers that a step gives and takes, in their order, and the operation of each.

    Raises:
        PySparkException, LimitExceededError: The query failed on a row; or it gives too many.
    """
    make_ready(spark, request, in_one_order=False)
    tables = [each for each in request.inputs if each.alias in known.tables]
    probes = _find_probes(spark, next(each for each in request.inputs if each.alias == known.query.probe), tables, work)
    if probes is None:
        return
    times = probes.first_us, probes.last_us
    versions = {each.alias: versions_at(spark, each, known.tables[each.alias], times, work) for each in tables}
    asked = {">": _signed(probes.rows, ">")} | ({"<": _signed(probes.rows, "<")} if probes.are_taken else {})
    answers = {
        sign: compute_steps(spark, known.steps, {known.query.probe: rows, **versions}) for sign, rows in asked.items()
    }
    changes = changes_between(answers[">"], answers.get("<"), key=None)
    yield from iter_operations(changes, known.result.names, request, work, chunk_rows)


def list_lookbacks(known: KnownAsOf) -> dict[str, Lookback]:
    """Return which probes before a step can have other answers after it (ASOF-10), and of which versions (ASOF-11)."""
    delays, probe = dict.fromkeys(known.tables, 0), known.query.probe
    versions = {
        alias: Lookback(waits_for=delays, behind_us=0, newest_by=key, asked_by=(probe,))
        for alias, key in known.tables.items()
    }
    return {probe: Lookback(waits_for=delays, behind_us=0, meets_new=True), **versions}


def count_late_rows(request: TransformRequest, tables: Collection[str], work: Work) -> int:
    """Count the rows of temporal tables that came when a probe of their time could be answered already (ASOF-6)."""
    return sum(late_versions(new_arrivals(each, work)).size for each in request.inputs if each.alias in tables)


def promised_watermark(request: TransformRequest, known: KnownAsOf) -> Timestamp | None:
    """Return the watermark after a step: the lowest of all inputs, never below the one before (ASOF-8)."""
    stated = [highest_watermark(each) for each in request.inputs]
    reached = [each for each in stated if each is not None]
    if not known.query.passes_event_time or len(reached) < len(stated):
        return request.prev_watermark
    return min(reached) if request.prev_watermark is None else max(min(reached), request.prev_watermark)


def _find_probes(
    spark: SparkSession, source: TransformInput, tables: Sequence[TransformInput], work: Work
) -> _Probes | None:
    """Find the probes that can be answered after a step and could not before, or have changed; None: there are none."""
    last = source.last_offset
    after_us = _lowest([highest_watermark(each) for each in tables])
    before_us = _lowest([each.prev_watermark for each in tables])
    if after_us is None or last is None:
        return None
    rows = _answered(spark, source, last, after_us, work).withColumn(_COUNT, lit(1))
    if before_us is not None and source.prev_offset is not None:
        before = _answered(spark, source, source.prev_offset, before_us, work)
        rows = rows.unionAll(before.withColumn(_COUNT, lit(-1)))
    names = [quote_spark_name(each) for each in rows.columns if each != _COUNT]
    rows = rows.groupBy(*names).agg(total(f"`{_COUNT}`").alias(_COUNT)).where(col(f"`{_COUNT}`") != 0).persist()
    time = f"unix_micros(CAST({quote_spark_name(source.vocabulary.event_time)} AS TIMESTAMP))"
    bounds = rows.agg(expr(f"min({time})"), expr(f"max({time})"), expr(f"min(`{_COUNT}`)")).collect()[0]
    return None if bounds[0] is None else _Probes(rows, bounds[0], bounds[1], bounds[2] < 0)


def _answered(spark: SparkSession, source: TransformInput, upto: int, until_us: int, work: Work) -> DataFrame:
    return folded_rows(spark, source, upto, in_content_order=False, event_times_us=(MIN_US, until_us + 1), work=work)


def _lowest(marks: Sequence[Timestamp | None]) -> int | None:
    reached = [unix_us(each) for each in marks if each is not None]
    return min(reached) if len(reached) == len(marks) else None


def _ranges(times_us: tuple[int, int], table: TransformInput, work: Work) -> Iterator[tuple[int, int]]:
    """Cut the times of probes, after the first of a pair up to the second, so that one state of the table counts."""
    first_us, last_us = times_us
    cuts = np.unique(all_arrivals(table, work).known_us)
    # What was in force before is asked by nobody, and what took it may not have been given (ASOF-11).
    after_us = max(first_us - 1, MIN_US)
    for cut in (int(each) for each in cuts if first_us <= each < last_us):
        yield after_us, cut
        after_us = cut
    yield after_us, last_us


def late_versions(arrivals: StepArrivals) -> npt.NDArray[np.int64]:
    """Return the offsets of rows that are not after the watermark known before their blocks (ASOF-6)."""
    return arrivals.offsets


def versions_at(
    spark: SparkSession,
    table: TransformInput,
    key: Sequence[str],
    times_us: tuple[int, int],
    work: Work,
    *,
    in_content_order: bool = False,
) -> DataFrame:
    """Return the versions that count for times: of current rows at the first watermark not before each (ASOF-4).

    Args:
        spark: A session.
        table: With its earlier slices and watermarks.
        key: Its primary key.
        times_us: The first and the last of the times. Where the table has stated no watermark, no version counts.
        work: Of this request.
        in_content_order: In one partition, ordered by all columns.
    """
    marks = rising((*table.earlier_watermarks, *table.watermarks), None)
    found: DataFrame | None = None
    for after_us, until_us in _ranges(times_us, table, work):
        upto = next((mark.last_offset for mark in marks if unix_us(mark.event_time) >= until_us), None)
        rows = folded_rows(spark, table, upto, in_content_order=False, with_offset=True, work=work)
        versions = _cut(with_versions(rows, table.vocabulary.event_time, key), after_us, until_us)
        found = versions if found is None else found.unionAll(versions)
    assert found is not None
    return order_by_content(found) if in_content_order else found


def _cut(versions: DataFrame, after_us: int, until_us: int) -> DataFrame:
    """Let versions be in force after a time and up to another one only."""
    begin = expr(f"greatest(`{FROM}`, timestamp_micros({after_us + 1}L))")
    end = expr(
        f"least(`{UNTIL}`, timestamp_micros({until_us + 1}L))"
    )  # one without an end has a null, which is left out
    return versions.withColumns({FROM: begin, UNTIL: end}).where(f"`{FROM}` < `{UNTIL}`")


def _signed(rows: DataFrame, sign: str) -> DataFrame:
    """Return rows as often as they are counted, of those that are given (``>``) or taken (``<``)."""
    names = [quote_spark_name(each) for each in rows.columns if each != _COUNT]
    repeated = f"explode(array_repeat(0, CAST(abs(`{_COUNT}`) AS INT))) AS `{_COUNT}`"
    return rows.where(f"`{_COUNT}` {sign} 0").selectExpr(*names, repeated).drop(_COUNT)
