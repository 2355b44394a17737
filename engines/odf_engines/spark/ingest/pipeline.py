"""Ingest: the steps in their order, from one local file to one slice.

read → convert → (converters) → (preprocess) → stage → (validate) → merge → slice, state and quarantine. Every step
leaves files or a data frame for the next one and knows nothing of the others, so a step can be added between any two.

Source: ODF "Ingest"; spec/ingest.md.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException

from odf_engines.contract import IngestRequest, InvalidSourceError
from odf_engines.errors import EngineFailureError, InvalidQueryError
from odf_engines.ingest.appending import append_records, is_append
from odf_engines.ingest.columns import ORD, Columns, InvalidColumnsError, columns_of
from odf_engines.ingest.converted import iter_converted, write_converted
from odf_engines.ingest.leaving import leave, write_changes
from odf_engines.ingest.merged import Merged
from odf_engines.ingest.quarantined_rows import BadRows, list_unread
from odf_engines.ingest.read import ReadResult, has_query, read_request
from odf_engines.ingest.read_options import parse_times
from odf_engines.ingest.result import Folders, Ingested, answer_of, name_samples, slice_schema, write_sample
from odf_engines.ingest.unread_keys import UnreadKeys, find_unread_keys
from odf_engines.ingest.validated import Validated
from odf_engines.records.source_records import ERRORS, RECORD
from odf_engines.spark.fixed_order import allow_any_order, in_one_order, unspilled
from odf_engines.spark.gate.statement import invalid_query
from odf_engines.spark.ingest.convert import convert_read, convert_records
from odf_engines.spark.ingest.handover import Handover, handover_for
from odf_engines.spark.ingest.merge import keeps_state, merge_rows
from odf_engines.spark.ingest.preprocess import run_preprocess
from odf_engines.spark.ingest.refused_rows import iter_refused, iter_unconverted
from odf_engines.spark.ingest.staging import (
    load_state,
    schema_of_query,
    stage_converted,
    stage_preprocessed,
    validate_staged,
)
from odf_engines.spark.java_side import is_on_cluster, java_class, java_session, tasks_at_once
from odf_engines.stage_figures import MOST_SAMPLE_ROWS, IngestStage, SampledStage
from odf_engines.stage_names import name_strategy
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.schema_arrow import rows_schema_of

_BYTES_PER_PARTITION = 64 * 1024 * 1024  # guess: sorts within a 1 GiB heap
_LEAST_PARTITION_BYTES = 1024 * 1024  # guess: less takes no longer than to send the task


def convert(spark: Any, request: IngestRequest, folders: Folders) -> dict[str, object]:
    """Read and convert one source file, for a query that another engine runs (ING-7).

    Raises:
        InvalidSourceError: As ``ingest``.
    """
    _configure(spark, request)
    handover = handover_for(folders.scratch, [request.source_path])
    try:
        result = read_request(request, folders)
        if request.converters:
            result, failed = convert_read(spark, request, folders, result, handover)
            return write_converted(request, folders, result, iter_converted(result.records.path), failed)
        converted = handover.keep(
            convert_records(spark, result.records, result.target, parse_times(request.read)), "converted"
        )
        _sample_read(request, folders, result, converted)
        good = converted.where(f"{ERRORS} IS NULL").coalesce(1).sortWithinPartitions(RECORD)
        bad = [iter_unconverted(converted, handover)]
        return write_converted(request, folders, result, handover.iter_batches(good, "good"), bad)
    except (UnsupportedError, MalformedError) as error:
        raise InvalidSourceError(request.source_name, str(error)) from error


def ingest(spark: Any, request: IngestRequest, folders: Folders) -> Ingested:
    """Turn one source file into a slice.

    Args:
        spark: A session of this request's own; its settings are changed.
        request: What to do.
        folders: Where.

    Raises:
        InvalidSourceError: The file as a whole is unusable, its columns break the dataset's rules, or it needs a
            format, an option or a type that we lack.
        InvalidQueryError: The preprocess query is wrong, or its columns break the dataset's rules.
        EngineFailureError: The state is not the one of this dataset and offset.
    """
    _configure(spark, request)
    inputs = [request.source_path] + ([request.state_path] if request.state_path else [])
    handover = handover_for(folders.scratch, inputs)
    try:
        result = read_request(request, folders)
        bad: list[BadRows] = []
        if request.converters:
            result, bad = convert_read(spark, request, folders, result, handover)
        appended = append_records(request, folders, result, bad) if is_append(request) else None
        return appended or _merge(spark, request, folders, result, handover, bad)
    except PySparkException as error:
        if not has_query(request):
            raise
        # Everything of ours is guarded; a value on which a query fails stops it.
        raise invalid_query(error) from error
    except InvalidColumnsError as error:
        if request.preprocess is not None:
            raise InvalidQueryError(str(error)) from error
        raise InvalidSourceError(request.source_name, str(error)) from error
    except (UnsupportedError, MalformedError) as error:
        if request.prepared is not None:
            raise InvalidQueryError(str(error)) from error
        raise InvalidSourceError(request.source_name, str(error)) from error


def _merge(
    spark: Any,
    request: IngestRequest,
    folders: Folders,
    result: ReadResult,
    handover: Handover,
    bad: Sequence[BadRows],
) -> Ingested:
    converted = convert_records(spark, result.records, result.target, parse_times(request.read))
    if not result.records.is_typed:
        converted = handover.keep(converted, "converted")
        _sample_read(request, folders, result, converted)
    known = None if request.known_schema is None else rows_schema_of(request.known_schema)
    if not has_query(request):
        columns = columns_of(result.target, request.merge, request.vocabulary, known)
        schema = slice_schema(request, columns, known)
        staged = stage_converted(converted, columns)
    else:
        assert request.preprocess is not None
        with (
            folders.clock.measuring_alone(IngestStage.PREPROCESS, request.preprocess.engine.lower()),
            in_one_order(spark),
        ):
            answer, matters = run_preprocess(spark, request.preprocess, converted, result.target)
            columns = columns_of(schema_of_query(answer, known), request.merge, request.vocabulary, known)
            schema = slice_schema(request, columns, known)
            with unspilled(spark, matters=matters):
                staged = handover.keep(stage_preprocessed(answer, columns), "staged", at_once=matters)
        if request.has_samples:
            given = columns.schema if columns.has_event_time else columns.schema.remove(columns.event_time)
            first = staged.orderBy(ORD).limit(MOST_SAMPLE_ROWS).toArrow()
            write_sample(request, folders, SampledStage.QUERIED, first, given)
    validated = None
    if request.validators:
        validated, staged = validate_staged(spark, request, staged, columns, folders)
    unread = _find_unread(request, folders, result, converted, columns, validated, handover)
    with folders.clock.measuring_alone(IngestStage.MERGE, name_strategy(request)) as sums:
        merged = _merged_rows(spark, request, staged, columns, handover, unread)
        changes = write_changes(request, folders, merged, columns, schema, sums)
    rows = [*bad, *list_unread(result.records)]
    if not result.records.is_typed:
        rows.append(iter_unconverted(converted, handover))
    rows += merged.refused
    if validated is not None:
        rows.append(validated.iter_bad(are_records=request.preprocess is None))
    return leave(request, folders, result, changes, rows, validated)


def _sample_read(request: IngestRequest, folders: Folders, result: ReadResult, converted: Any) -> None:
    if request.has_samples:
        first = converted.where(f"{ERRORS} IS NULL").orderBy(RECORD).limit(MOST_SAMPLE_ROWS).toArrow()
        write_sample(request, folders, SampledStage.READ, first, result.target)


def _find_unread(
    request: IngestRequest,
    folders: Folders,
    result: ReadResult,
    converted: Any,
    columns: Columns,
    validated: Validated | None,
    handover: Handover,
) -> UnreadKeys:
    more: Iterable[pa.RecordBatch] = ()
    if not result.records.is_typed and request.state_path is not None:
        more = handover.iter_batches(converted.where(f"{ERRORS} IS NOT NULL").drop(ERRORS), "unread")
    return find_unread_keys(request, columns, result, validated, folders.scratch / "unread-keys.parquet", more)


def _merged_rows(
    spark: Any, request: IngestRequest, staged: Any, columns: Columns, handover: Handover, unread: UnreadKeys
) -> Merged:
    state = None
    if request.state_path is not None and keeps_state(request.merge):
        state = load_state(spark, request.state_path, request.merge, columns, request.next_offset)
    elif request.next_offset > 0 and keeps_state(request.merge):
        raise EngineFailureError("a dataset that has rows cannot be merged into without its projected state")
    outcome = merge_rows(request.merge, staged, columns, state, request.fallback_event_time, handover, unread)
    refused = [
        iter_refused(refusal, columns, handover, f"refused-{number}", are_records=request.preprocess is None)
        for number, refusal in enumerate(outcome.refusals)
    ]
    new_state = None if outcome.state is None else handover.iter_batches(outcome.state, "state")
    kept = outcome.kept
    count_kept = int if kept is None else lambda: int(kept.count())
    return Merged(handover.iter_batches(outcome.changes, "changes"), refused, new_state, count_kept)


def _configure(spark: Any, request: IngestRequest) -> None:
    source_bytes = request.source_path.stat().st_size
    # On a cluster every core has its part, also of a source that one core would manage.
    most_bytes = source_bytes // tasks_at_once(spark) if is_on_cluster(spark) else _BYTES_PER_PARTITION
    partition_bytes = max(_LEAST_PARTITION_BYTES, min(_BYTES_PER_PARTITION, most_bytes))
    partitions = max(1, source_bytes // partition_bytes)
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Columns of data differ by case.
        "spark.sql.caseSensitive": "true",
        # Whole files of Spark are only read by Arrow here, which takes INT96 for nanoseconds.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Every order that matters is sorted for, so files may be read and rows exchanged in parallel.
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.files.maxPartitionBytes": str(partition_bytes),
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    allow_any_order(spark)


def run(spark: Any, request: IngestRequest, folder: Path) -> dict[str, object]:
    """Ingest one file; see `worker` for what goes in and out."""
    return _run(spark, folder, lambda folders: answer_of(request, ingest(spark, request, folders), folders.clock))


def run_conversion(spark: Any, request: IngestRequest, folder: Path) -> dict[str, object]:
    """Convert one file; see `worker` for what goes in and out."""
    return _run(spark, folder, lambda folders: convert(spark, request, folders))


def _run(spark: Any, folder: Path, work: Callable[[Folders], dict[str, object]]) -> dict[str, object]:
    scratch = folder / "work"
    scratch.mkdir()
    # A parser that is asked directly looks for settings in the session of its thread.
    sessions = java_class("org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(java_session(spark))
    try:
        folders = Folders(scratch, folder)
        return {**work(folders), **name_samples(folders)}
    finally:
        sessions.clearActiveSession()
        shutil.rmtree(scratch, ignore_errors=True)
