"""The read step: dispatch by format, and find names and types of the columns.

Source: ODF ReadStep; spec/ingest.md ING-1 to ING-3.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.column_streams import may_be_columns
from odf_engines.contract import IngestRequest, PreparedRows
from odf_engines.errors import InvalidQueryError, InvalidSourceError
from odf_engines.ingest import csv_records, json_records
from odf_engines.ingest.columnar_files import is_stream
from odf_engines.ingest.columns import rename_reserved
from odf_engines.ingest.parquet_records import read_parquet
from odf_engines.ingest.plug_in_records import NEEDED_STEP, read_with
from odf_engines.ingest.read_options import check_encoding, parse_dialect, parse_times
from odf_engines.ingest.result import Folders, write_sample_of_file
from odf_engines.ingest.shapefile_features import write_features
from odf_engines.ingest.source_schema import (
    SAMPLE_RECORDS,
    adapt_undeclared,
    check_columns,
    check_distinct,
    find_declared,
    guess_columns,
    guess_schema,
    text_schema,
)
from odf_engines.ingest.source_text import InvalidTextError
from odf_engines.ingest_parts import ReaderCall
from odf_engines.records.carriers import carrier_of
from odf_engines.records.source_records import SourceRecords
from odf_engines.stage_metrics import IngestStage, SampledStage
from odf_engines.stage_names import name_format
from odf_engines.validation.running_name import READER, RunningName
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    DataSchema,
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.vocabulary import Vocabulary

_TOO_LONG = f"a record is longer than {csv_records.MAX_RECORD_BYTES} bytes; is a quote not closed?"


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Records of a source and the schema they are to be converted to.

    Attributes:
        records: What was found.
        target: Names, slice types and nullability of the columns.
        left_out: Records that a converter left out (CONV-7).
    """

    records: SourceRecords
    target: pa.Schema
    left_out: int = 0


def read_request(request: IngestRequest, folders: Folders) -> ReadResult:
    """Read the file of a request, with the columns that the next step sees (ING-3).

    Raises:
        InvalidSourceError, UnsupportedError: As ``read_source``.
        InvalidQueryError: What another engine made of the rows holds what no slice can.
    """
    if request.prepared is not None:
        with folders.clock.measuring(IngestStage.PREPROCESS):
            return _read_prepared(request.prepared, request.known_schema, folders.scratch)
    with folders.clock.measuring_alone(IngestStage.READ, name_format(request)) as sums:
        result = _read(request, folders)
        records, bad = result.records.record_count, len(result.records.broken)
        if result.records.unconverted is not None:
            bad += pq.read_metadata(result.records.unconverted).num_rows
        sums.count(rows_in=records, rows_out=records - bad, bad_rows=bad)
    write_sample_of_file(request, folders, SampledStage.READ, result.records.path, result.target)
    return result


def _read(request: IngestRequest, folders: Folders) -> ReadResult:
    if request.reader is not None:
        return _read_with_plug_in(request, request.reader, folders)
    # Rows that a query or a converter prepares are as they were read: what the event time is, it says itself.
    vocabulary = request.vocabulary if request.preprocess is None and not request.converters else None
    result = read_source(request.read, request.source_path, request.source_name, vocabulary, folders.scratch)
    if vocabulary is None or request.read.schema is not None:
        return result
    target = rename_reserved(result.target, request.merge, vocabulary)
    renamed = dict(zip(result.target.names, target.names, strict=True))
    return ReadResult(replace(result.records, names=tuple(renamed[name] for name in result.records.names)), target)


def _read_with_plug_in(request: IngestRequest, reader: ReaderCall, folders: Folders) -> ReadResult:
    target = find_declared(request.read)
    if target is None or not isinstance(request.read, ReadStepNdJson):
        raise InvalidSourceError(request.source_name, f"reader {reader.name}: {NEEDED_STEP}")
    running = RunningName(folders.output)
    running.tell(f"{READER} {reader.name}")
    times, path = parse_times(request.read), folders.scratch / "records.parquet"
    records = read_with(reader, request.source_path, request.source_name, target, times, path)
    running.tell("")
    return ReadResult(records, target)


def _read_prepared(prepared: PreparedRows, known: DataSchema | None, scratch: Path) -> ReadResult:
    """Take up what a query gave, as if it were the source; its rows are no records of the source (ING-7).

    Where the engine of the query lacks a type of the dataset, the rows come in the next wider one.
    """
    try:
        records, target = read_parquet(prepared.rows, "the result", None, None, scratch / "records.parquet")
    except InvalidSourceError as error:
        raise InvalidQueryError(error.message) from error
    if records.broken:
        number = min(records.broken)
        fault = records.broken[number][0]
        raise InvalidQueryError(f"row {number} of the result, column {fault.column}: {fault.message}: {fault.value}")
    for field in () if known is None else rows_schema_of(known):
        place = target.get_field_index(field.name)
        if place >= 0 and carrier_of(field.type) == target.field(place).type:
            target = target.set(place, target.field(place).with_type(field.type))
    return ReadResult(replace(records, record_count=prepared.records), target)


def read_source(
    step: ReadStep, source: Path, source_name: str, vocabulary: Vocabulary | None, scratch: Path
) -> ReadResult:
    """Read the file `source` as `step` says.

    Args:
        step: Format, options and schema.
        source: Local file, not compressed.
        source_name: How messages call it.
        vocabulary: Names of the system columns, to which a schema that nobody declared is adapted; None: it is not.
        scratch: Folder for the records file.

    Raises:
        InvalidSourceError: The file as a whole cannot be read with this step.
        UnsupportedError: An option or a format we lack.
    """
    declared = find_declared(step)
    check_encoding(step)
    records_path = scratch / "records.parquet"

    def adapted(found: pa.Schema) -> pa.Schema:
        return found if vocabulary is None else adapt_undeclared(found, vocabulary)

    if may_be_columns(step) and is_stream(source):
        return ReadResult(*read_parquet(source, source_name, declared, vocabulary, records_path))
    match step:
        case ReadStepCsv():
            result = _read_csv(step, source, source_name, declared, adapted, records_path)
        case ReadStepParquet():
            result = ReadResult(*read_parquet(source, source_name, declared, vocabulary, records_path))
        case ReadStepEsriShapefile(sub_path=sub_path):
            features = write_features(source, source_name, sub_path, scratch)
            as_features = ReadStepNdGeoJson(schema=step.schema)
            result = _read_json(as_features, features, source_name, declared, adapted, records_path)
        case ReadStepJson() | ReadStepNdJson() | ReadStepGeoJson() | ReadStepNdGeoJson():
            result = _read_json(step, source, source_name, declared, adapted, records_path)
        case _:
            raise UnsupportedError("read step", found=type(step).__name__.removeprefix("ReadStep"))
    return result


def _read_csv(
    step: ReadStepCsv,
    source: Path,
    source_name: str,
    declared: pa.Schema | None,
    adapted: Callable[[pa.Schema], pa.Schema],
    records_path: Path,
) -> ReadResult:
    dialect = parse_dialect(step)
    has_header = bool(step.header)
    try:
        first = csv_records.read_header(source, dialect)
    except InvalidTextError as error:
        raise InvalidSourceError(source_name, f"the first record: {error}; the file must be UTF-8") from error
    except csv_records.TooLongRecordError as error:
        raise InvalidSourceError(source_name, _TOO_LONG) from error
    if not first and has_header and declared is not None:
        # A download of nothing would retract every row of a snapshot.
        raise InvalidSourceError(source_name, "it is empty: even the header with the names of the columns is missing")
    if not first:
        names = tuple(declared.names) if declared is not None else ()
    elif has_header:
        names = first
        check_distinct(names, source_name)
        if declared is not None:
            check_columns(names, declared, source_name)
    elif declared is not None:
        names = tuple(declared.names)
    else:
        names = tuple(f"column_{number}" for number in range(1, len(first) + 1))
    target = declared
    if target is None and step.infer_schema:
        rows = csv_records.iter_sample(source, dialect, SAMPLE_RECORDS, header=has_header)
        target = guess_schema((row for row in rows if len(row) == len(names)), names)
    try:
        if declared is None:
            target = adapted(text_schema(names) if target is None else target)
        assert target is not None
        records = csv_records.read_csv(
            source, records_path, dialect, names, header=has_header, target=target, times=parse_times(step)
        )
    except csv_records.TooLongRecordError as error:
        raise InvalidSourceError(source_name, _TOO_LONG) from error
    return ReadResult(records, target)


def _read_json(
    step: ReadStepJson | ReadStepNdJson | ReadStepGeoJson | ReadStepNdGeoJson,
    source: Path,
    source_name: str,
    declared: pa.Schema | None,
    adapted: Callable[[pa.Schema], pa.Schema],
    records_path: Path,
) -> ReadResult:
    is_geo = isinstance(step, ReadStepGeoJson | ReadStepNdGeoJson)
    parse = json_records.parse_feature if is_geo else json_records.parse_object
    try:
        match step:
            case ReadStepJson(sub_path=sub_path):
                elements = json_records.elements_of(source, sub_path)
            case ReadStepGeoJson():
                elements = json_records.features_of(source)
            case _:
                elements = json_records.lines_of(source)
    except json_records.JsonPathError as error:
        raise InvalidSourceError(source_name, f"{error.reason}") from error
    target = declared
    if target is None:
        target = adapted(guess_columns(json_records.sample(elements, SAMPLE_RECORDS, is_geo=is_geo)))
    records = json_records.read_json(elements, records_path, parse, tuple(target.names), target, parse_times(step))
    return ReadResult(records, target)
