"""Ingests that need no query: records are read, converted, validated, merged and written.

Source: ODF "Ingest", spec/ingest.md ING-1 to ING-13.
"""

from collections.abc import Sequence

import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_engines.errors import EngineFailureError, InvalidQueryError, InvalidSourceError
from odf_engines.ingest.columns import InvalidColumnsError, columns_of
from odf_engines.ingest.converted import convert_rows, iter_converted, write_converted
from odf_engines.ingest.leaving import leave, write_changes
from odf_engines.ingest.merged import Merge, append_in_memory
from odf_engines.ingest.quarantined_rows import BadRows, list_unread
from odf_engines.ingest.read import ReadResult, read_request
from odf_engines.ingest.result import Folders, Ingested, slice_schema
from odf_engines.ingest.unread_keys import find_unread_keys
from odf_engines.ingest.validated import validate_rows
from odf_engines.records.source_records import RECORD
from odf_engines.stage_metrics import IngestStage
from odf_engines.stage_names import name_strategy
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.schema_arrow import rows_schema_of


def ingest_source(request: IngestRequest, folders: Folders, merge: Merge = append_in_memory) -> Ingested:
    """Ingest the records of a source whose query, if it has one, was run.

    Raises:
        InvalidSourceError: The file as a whole is unusable, or its columns break the dataset's rules.
        InvalidQueryError: So do those of the query that another engine ran.
        EngineFailureError: The state is not the one of this dataset and offset, or the query was not run.
    """
    if request.preprocess is not None and request.prepared is None:
        raise EngineFailureError("the query of an ingest runs before its rows are merged")
    try:
        result = read_request(request, folders)
        if not request.converters:
            return ingest_records(request, folders, result, merge=merge)
        converted = convert_rows(request, folders, result.records.path, result)
        return ingest_records(request, folders, converted.result, [converted.iter_bad()], merge=merge)
    except (InvalidColumnsError, UnsupportedError, MalformedError) as error:
        if request.prepared is not None:
            raise InvalidQueryError(str(error)) from error
        raise InvalidSourceError(request.source_name, str(error)) from error


def ingest_records(
    request: IngestRequest,
    folders: Folders,
    result: ReadResult,
    bad: Sequence[BadRows] = (),
    *,
    merge: Merge = append_in_memory,
) -> Ingested:
    """Ingest records that were read, with those that are bad already.

    Raises:
        InvalidColumnsError, UnsupportedError, MalformedError: Columns break the dataset's rules.
    """
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
        changes = write_changes(request, folders, merged, columns, schema, sums)
        sums.count(rows_in=pq.read_metadata(path).num_rows)
    return leave(request, folders, result, changes, [*bad, *merged.refused], validated)


def convert_source(request: IngestRequest, folders: Folders) -> dict[str, object]:
    """Convert the records of a source for a query that another engine runs; see ``write_converted``.

    Raises:
        InvalidSourceError: The file as a whole is unusable.
    """
    try:
        result = read_request(request, folders)
    except (UnsupportedError, MalformedError) as error:
        raise InvalidSourceError(request.source_name, str(error)) from error
    bad: list[BadRows] = []
    if request.converters:
        converted = convert_rows(request, folders, result.records.path, result)
        result, bad = converted.result, [converted.iter_bad()]
    return write_converted(request, folders, result, iter_converted(result.records.path), bad)
