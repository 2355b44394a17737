"""Ingests that need no query: records are read, converted, validated, merged and written.

Source: ODF "Ingest", spec/ingest.md ING-1 to ING-13.
"""

from collections.abc import Sequence

import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_engines.errors import InvalidQueryError, InvalidSourceError
from odf_engines.ingest.columns import InvalidColumnsError, columns_of
from odf_engines.ingest.converted import convert_rows, iter_converted, write_converted
from odf_engines.ingest.leaving import leave, write_changes
from odf_engines.ingest.merged import Merge, append_in_memory
from odf_engines.ingest.quarantined_rows import BadRows, list_unread
from odf_engines.ingest.read import ReadResult, has_query, read_request
from odf_engines.ingest.result import Folders, Ingested, slice_schema
from odf_engines.ingest.unread_keys import find_unread_keys
from odf_engines.ingest.validated import validate_rows
from odf_engines.ingest_parts import conditions_of
from odf_engines.records.source_records import RECORD
from odf_engines.stage_figures import IngestStage
from odf_engines.stage_names import name_strategy
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import MergeStrategyAppend
from odf_protocol.schema_arrow import rows_schema_of


def has_sql(request: IngestRequest) -> bool:
    """Say whether a request has a query that is still to be run, or a condition in SQL."""
    return has_query(request) or bool(conditions_of(request.validators))


def is_append(request: IngestRequest) -> bool:
    """Say whether a request asks for an append without a query, or a condition in SQL."""
    return not has_sql(request) and isinstance(request.merge, MergeStrategyAppend)


def append_source(request: IngestRequest, folders: Folders, merge: Merge = append_in_memory) -> Ingested | None:
    """Append the records of a source, of a request without a query or a condition in SQL.

    Returns:
        None where a column is of a type that texts are converted to elsewhere, or the merge is for another engine.

    Raises:
        InvalidSourceError: The file as a whole is unusable, or its columns break the dataset's rules.
        InvalidQueryError: So do those of the query that another engine ran.
    """
    try:
        result = read_request(request, folders)
        if not request.converters:
            return append_records(request, folders, result, merge=merge)
        if not result.records.is_typed:
            return None
        converted = convert_rows(request, folders, result.records.path, result)
        return append_records(request, folders, converted.result, [converted.iter_bad()], merge=merge)
    except (InvalidColumnsError, UnsupportedError, MalformedError) as error:
        if request.prepared is not None:
            raise InvalidQueryError(str(error)) from error
        raise InvalidSourceError(request.source_name, str(error)) from error


def append_records(
    request: IngestRequest,
    folders: Folders,
    result: ReadResult,
    bad: Sequence[BadRows] = (),
    *,
    merge: Merge = append_in_memory,
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
    path, bad = result.records.path, [*list_unread(result.records), *bad]
    validated = None
    if request.validators:
        validated = validate_rows(request, folders, path, RECORD, columns.schema)
        path, bad = validated.path, [*bad, validated.iter_bad(are_records=request.prepared is None)]
    with folders.clock.measuring_alone(IngestStage.MERGE, name_strategy(request)) as sums:
        unread = find_unread_keys(request, columns, result, validated, folders.scratch / "unread-keys.parquet")
        merged = merge(request, path, columns, unread)
        if merged is None:
            return None
        changes = write_changes(request, folders, merged, columns, schema, sums)
        sums.count(rows_in=pq.read_metadata(path).num_rows)
    return leave(request, folders, result, changes, [*bad, *merged.refused], validated)


def convert_source(request: IngestRequest, folders: Folders) -> dict[str, object] | None:
    """Convert the records of a source for a query that another engine runs; see ``write_converted``.

    Returns:
        None where a column is of a type that texts are converted to elsewhere.

    Raises:
        InvalidSourceError: The file as a whole is unusable.
    """
    try:
        result = read_request(request, folders)
    except (UnsupportedError, MalformedError) as error:
        raise InvalidSourceError(request.source_name, str(error)) from error
    if not result.records.is_typed:
        return None
    bad: list[BadRows] = []
    if request.converters:
        converted = convert_rows(request, folders, result.records.path, result)
        result, bad = converted.result, [converted.iter_bad()]
    return write_converted(request, folders, result, iter_converted(result.records.path), bad)
