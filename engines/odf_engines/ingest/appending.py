"""Ingests that need no query and no merge: records are read, converted, validated, ordered and written.

Source: ODF "Ingest", merge strategy "append"; spec/ingest.md ING-1 to ING-8.
"""

from collections.abc import Iterator, Sequence

from odf_engines.bad_rows import conditions_of
from odf_engines.contract import IngestRequest
from odf_engines.errors import InvalidQueryError, InvalidSourceError
from odf_engines.ingest.columns import InvalidColumnsError, columns_of
from odf_engines.ingest.converted import convert_rows
from odf_engines.ingest.plain_append import Order, iter_appended
from odf_engines.ingest.prepared import iter_converted, write_converted
from odf_engines.ingest.quarantine import QuarantinedRow, earlier_of, iter_broken, plug_ins_of, write_quarantine
from odf_engines.ingest.read import ReadResult, has_query, read_request
from odf_engines.ingest.result import Folders, Ingested, slice_schema, write_slice
from odf_engines.ingest.validated import validate_rows
from odf_engines.records.source_records import RECORD
from odf_engines.stage_figures import IngestStage
from odf_engines.stage_names import name_strategy
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import MergeStrategyAppend
from odf_protocol.schema_arrow import rows_schema_of

__all__ = ["append_records", "append_source", "convert_source", "is_append"]


def is_append(request: IngestRequest) -> bool:
    """Say whether a request asks for an append without a query, or a condition in SQL."""
    has_sql = has_query(request) or bool(conditions_of(request.validators))
    return not has_sql and isinstance(request.merge, MergeStrategyAppend)


def append_source(request: IngestRequest, folders: Folders, order: Order | None = None) -> Ingested | None:
    """Append the records of a source.

    Args:
        request: One for which ``is_append`` holds.
        folders: Where.
        order: Orders what memory cannot hold.

    Returns:
        None where a record is not plain, or there are too many to be ordered in memory and no other way is given.

    Raises:
        InvalidSourceError: The file as a whole is unusable, or its columns break the dataset's rules.
        InvalidQueryError: So do those of the query that another engine ran.
    """
    try:
        result = read_request(request, folders)
        if not request.converters:
            return append_records(request, folders, result, order=order)
        if not result.records.is_typed:
            return None
        converted = convert_rows(request, folders, result.records.path, result)
        return append_records(request, folders, converted.result, [converted.iter_bad()], order=order)
    except (InvalidColumnsError, UnsupportedError, MalformedError) as error:
        if request.prepared is not None:
            raise InvalidQueryError(str(error)) from error
        raise InvalidSourceError(request.source_name, str(error)) from error


def append_records(
    request: IngestRequest,
    folders: Folders,
    result: ReadResult,
    bad: Sequence[Iterator[QuarantinedRow]] = (),
    *,
    order: Order | None = None,
) -> Ingested | None:
    """Append records that were read, with those that are bad already; for the result see ``append_source``.

    Raises:
        InvalidColumnsError, UnsupportedError, MalformedError: Columns break the dataset's rules.
    """
    if not result.records.is_typed:
        return None
    known = None if request.known_schema is None else rows_schema_of(request.known_schema)
    columns = columns_of(result.target, request.merge, request.vocabulary, known)
    schema = slice_schema(request, columns, known)
    path, bad = result.records.path, [iter_broken(result.records), *bad]
    validated = None
    if request.validators:
        validated = validate_rows(request, folders, path, RECORD, columns.schema)
        path, bad = validated.path, [*bad, validated.iter_bad(are_records=request.prepared is None)]
    with folders.clock.measuring_alone(IngestStage.MERGE, name_strategy(request)) as sums:
        changes = iter_appended(path, columns, order)
        if changes is None:
            return None
        data_path, written = write_slice(request, folders, changes, columns, schema)
        sums.count(rows_in=written.row_count, rows_out=written.row_count)
    quarantine_path = folders.output / "quarantine.parquet"
    with folders.clock.measuring(IngestStage.QUARANTINE) as stage:
        quarantine = write_quarantine(
            quarantine_path,
            result.records,
            bad,
            plug_ins_of(request),
            earlier=earlier_of(request),
            has_converters=bool(request.converters),
        )
    stage.count(rows_in=quarantine.rows, rows_out=quarantine.rows)
    return Ingested(
        schema,
        written,
        data_path,
        None,
        quarantine_path,
        quarantine,
        result.records.record_count,
        warnings=() if validated is None else validated.warnings,
        batch_faults=() if validated is None else validated.rows.batch_faults,
        left_out=result.left_out,
    )


def convert_source(request: IngestRequest, folders: Folders) -> dict[str, object] | None:
    """Convert the records of a source for a query that another engine runs; see ``write_converted``.

    Returns:
        None where a record is not plain.

    Raises:
        InvalidSourceError: The file as a whole is unusable.
    """
    try:
        result = read_request(request, folders)
    except (UnsupportedError, MalformedError) as error:
        raise InvalidSourceError(request.source_name, str(error)) from error
    if not result.records.is_typed:
        return None
    bad: list[Iterator[QuarantinedRow]] = []
    if request.converters:
        converted = convert_rows(request, folders, result.records.path, result)
        result, bad = converted.result, [converted.iter_bad()]
    return write_converted(request, folders, result, iter_converted(result.records.path), bad)
