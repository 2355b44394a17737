"""The operation ``transform``: one step of a derivative.

Of a map Spark computes the rows with the offsets and operations they came with, piece by piece; meanwhile the
operations of those before are fixed and the slice is written. Only some pieces are held in memory. Any other query is
a maintained view, of which Spark computes what changed, or has windows in event time, of which it computes those that
close.

Source: clauses ENGINE-11, ENGINE-12; MAP-1 to MAP-8 in ``spec/extensions/changelog-maps.md``; VIEW-1 to VIEW-8 in
``spec/extensions/maintained-views.md``.
"""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from odf_engines.contract import TransformInput, TransformRequest
from odf_engines.errors import InvalidQueryError
from odf_engines.host.arrow_texts import schema_text
from odf_engines.host.slices import write_slice
from odf_protocol.timestamp import Timestamp
from odf_spark import as_of_join, closed_sessions, maintained_view
from odf_spark.as_of_join import iter_answer_changes
from odf_spark.changelog import fix_tables
from odf_spark.chunks import CHUNK_BYTES, bound_rows, collect_chunks, cut_even, fit_in_memory, store_chunks
from odf_spark.closed_windows import count_late_rows, iter_closed, promised_watermark
from odf_spark.gate.statement import invalid_query
from odf_spark.known_transforms import (
    Known,
    KnownAsOf,
    KnownAsOfView,
    KnownMap,
    KnownSessions,
    KnownView,
    KnownWindows,
    find_out_transform,
)
from odf_spark.maintained_view import iter_changes
from odf_spark.relations import MAX_SCANS, ordered_rows
from odf_spark.rows_read import Computed, count_inputs, observe_rows
from odf_spark.running_part import RunningPart, running_part
from odf_spark.small_inputs import NOTHING_READ, RowsRead, Work
from odf_spark.steps import ParsedStep

__all__ = ["run"]

_Chunk = tuple[pa.Table, npt.NDArray[np.int64]]  # rows, and the operation of each

_CHUNK_ROWS = 131_072  # guess: a few MB of rows in a row group of the slice


def run(spark: SparkSession, request: TransformRequest, folder: Path) -> dict[str, object]:
    """Run one step; see ``worker`` for what goes in and out."""
    aliases = [each.alias for each in request.inputs]
    if len(set(aliases)) != len(aliases):
        raise InvalidQueryError(f"two inputs have the same alias: {', '.join(aliases)}")
    known = find_out_transform(spark, request)
    with running_part(folder, _steps_of(known)) as part:
        return _run(spark, request, known, folder, part)


def _steps_of(known: Known) -> tuple[ParsedStep, ...]:
    match known:
        case KnownMap():
            return ()
        case KnownAsOfView():
            return known.view.steps
    return known.steps


def _run(
    spark: SparkSession, request: TransformRequest, known: Known, folder: Path, part: RunningPart
) -> dict[str, object]:
    work = Work(folder / "work")
    work.folder.mkdir()
    report_rows_read: Callable[[], list[RowsRead]] = partial(count_inputs, request.inputs, work)
    if not isinstance(known, KnownMap):
        # What Spark concludes about the columns of both sides of a union can end in a key that it does not find; rows
        # in force are a union.
        spark.conf.set("spark.sql.constraintPropagation.enabled", "false")
    match known:
        case KnownMap():
            chunks, report_rows_read = _map_chunks(spark, known, request, work)
        case KnownView():
            chunks = iter_changes(spark, request, known, work, _CHUNK_ROWS)
        case KnownWindows():
            chunks = iter_closed(spark, request, known, work)
        case KnownSessions():
            chunks = closed_sessions.iter_closed_sessions(spark, request, known, work)
        case KnownAsOf():
            chunks = as_of_join.iter_answers(spark, request, known, work, _CHUNK_ROWS)
        case KnownAsOfView():
            chunks = iter_answer_changes(spark, request, known, work, _CHUNK_ROWS)
    try:
        rows_out = write_slice(
            part.writing(chunks),
            known.schema,
            folder / "data.parquet",
            next_offset=request.next_offset,
            system_time_ms=request.system_time.unix_ms,
        )
    except PySparkException as error:
        raise invalid_query(error) from error
    finally:
        shutil.rmtree(work.folder, ignore_errors=True)
    watermark = _watermark(spark, request, known)
    return {
        "schema": schema_text(known.schema),
        "data": "data.parquet" if rows_out else None,
        "inputs": report_rows_read(),
        "rows_out": rows_out,
        "late_rows": _count_late_rows(request, known, work),
        "watermark_ms": None if watermark is None else watermark.unix_ms,
        "checkpoint": None,
    }


def _map_chunks(
    spark: SparkSession, known: KnownMap, request: TransformRequest, work: Work
) -> tuple[Iterator[_Chunk], Callable[[], list[RowsRead]]]:
    """Give the pieces of the result, and a function that says what was read for them once all were taken."""
    source = next(each for each in request.inputs if each.alias == known.query.input_alias)
    chunks: Iterator[pa.Table] = iter(())
    report_rows_read: Callable[[], RowsRead] = dict
    if source.offset_interval is not None and source.slices:
        chunks, report_rows_read = _compute(spark, known, source, work)

    def on_progress() -> list[RowsRead]:
        others = count_inputs([each for each in request.inputs if each is not source], work)
        return [NOTHING_READ | report_rows_read() if each is source else others.pop(0) for each in request.inputs]

    return fix_tables(cut_even(bound_rows(chunks, request.limits.output_rows), _CHUNK_ROWS)), on_progress


def _compute(
    spark: SparkSession, known: KnownMap, source: TransformInput, work: Work
) -> tuple[Iterator[pa.Table], Callable[[], RowsRead]]:
    assert source.offset_interval is not None
    work.check(source.slices)
    is_small = sum(path.stat().st_size for path in source.slices) <= CHUNK_BYTES
    # How much of a file a task reads, where several may.
    spark.conf.set("spark.sql.files.maxPartitionBytes", CHUNK_BYTES)
    # Every row enters the plan, so that scans count them all (ENGINE-27).
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    rows = ordered_rows(
        spark, known.struct, source.slices, source.offset_interval, source.vocabulary, in_one_partition=is_small
    )
    # Many slices are sorted in one partition; a little is computed in one as well.
    fits = is_small or (len(source.slices) <= MAX_SCANS and fit_in_memory(source.slices))
    computed = Computed.SMALL if is_small else Computed.CHUNKS if fits else Computed.STORED
    rows, report_passed = observe_rows(rows, source.vocabulary.offset, computed)
    result = known.plan.over(spark, rows)
    chunks = collect_chunks(result, known.result) if fits else store_chunks(result, work.folder / "rows", _CHUNK_ROWS)
    return chunks, lambda: report_passed(result)


def _count_late_rows(request: TransformRequest, known: Known, work: Work) -> int:
    """Count the rows of a step that came too late to change what a final query gives (WINDOW-5, WINDOW-8, ASOF-6)."""
    match known:
        case KnownWindows():
            return count_late_rows(request, known, work)
        case KnownSessions():
            return closed_sessions.count_late_rows(request, known, work)
        case KnownAsOf() | KnownAsOfView():
            return as_of_join.count_late_rows(request, known.tables, work)
    return 0


def _watermark(spark: SparkSession, request: TransformRequest, known: Known) -> Timestamp | None:
    """Return the watermark after the step, never below the one reported before (MAP-8, VIEW-8, WINDOW-6, ASOF-8)."""
    if isinstance(known, KnownWindows):
        return promised_watermark(request, known.window)
    if isinstance(known, KnownSessions):
        return closed_sessions.promised_watermark(request, known)
    if isinstance(known, KnownAsOf):
        return as_of_join.promised_watermark(request, known)
    if isinstance(known, KnownView | KnownAsOfView):
        view = known.view if isinstance(known, KnownAsOfView) else known
        return maintained_view.promised_watermark(spark, request, view)
    stated: list[Timestamp] = []
    if known.query.passes_event_time:
        stated = [mark.event_time for mark in request.inputs[0].watermarks]
    if request.prev_watermark is not None:
        stated.append(request.prev_watermark)
    return max(stated, default=None)
