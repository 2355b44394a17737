"""Translating requests of ODF's engine contract into those of ours.

Source: ODF "Engine contract"; clauses GRPC-5 to GRPC-9 of ``spec/plug-ins/engine-grpc.md``.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import (
    InvalidQueryError,
    Limits,
    QueryRequest,
    QueryTable,
    TransformInput,
    TransformRequest,
    Watermark,
)
from odf_foreign.grpc.folders import ForbiddenPathError, SharedFolders
from odf_protocol import engine_messages
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import DataSchema, OffsetInterval, SetVocab, SqlQueryStep, TransformSql
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.schema_spark import quote_spark_name
from odf_protocol.vocabulary import Vocabulary

RAW_INPUT = "input"  # ODF "ExecuteRawQuery": what the query calls its files

_MAX_SCHEMA_FILE_BYTES = 16 * 1024 * 1024  # guess: a schema of 10,000 columns takes 2 MB
_MAX_OFFSET = 2**62  # guess: no dataset has as many rows; sums with row counts stay signed 64-bit numbers


def transform_request_of(
    message: engine_messages.WireTransformRequest, folders: SharedFolders, limits: Limits
) -> TransformRequest:
    """Translate one step.

    The caller states no watermark of the step before, so the result's is that of this step's inputs alone.

    Raises:
        ForbiddenPathError, MalformedError: What a sound caller does not ask.
        InvalidQueryError: An input has a type that ODF does not know.
    """
    _check_offset("next_offset", message.next_offset)
    checkpoint = message.prev_checkpoint_path
    return TransformRequest(
        dataset_id=str(message.dataset_id),
        transform=message.transform,
        vocabulary=_vocabulary_of(message.vocab),
        inputs=tuple(_input_of(each, folders) for each in message.query_inputs),
        system_time=message.system_time,
        next_offset=message.next_offset,
        prev_checkpoint=None if checkpoint is None else folders.get_input(checkpoint),
        limits=limits,
    )


def query_request_of(message: engine_messages.RawQueryRequest, folders: SharedFolders, limits: Limits) -> QueryRequest:
    """Translate a query over plain files, which all have the schema of the first.

    Raises:
        ForbiddenPathError, MalformedError: What a sound caller does not ask.
        InvalidQueryError: No step, a step that others cannot name, or a type that ODF does not know.
    """
    paths = tuple(folders.get_input(each) for each in message.input_data_paths)
    if not paths:
        raise MalformedError("RawQueryRequest.input_data_paths", expected="a path", found="none")
    table = QueryTable(
        name=RAW_INPUT, vocabulary=Vocabulary(), schema=_read_schema(paths[0]), slices=paths, is_changelog=False
    )
    return QueryRequest(tables=(table,), sql=_one_query(message.transform), limits=limits)


def _input_of(message: engine_messages.TransformRequestInput, folders: SharedFolders) -> TransformInput:
    schema_file = folders.get_input(message.schema_file)
    if schema_file.stat().st_size > _MAX_SCHEMA_FILE_BYTES:
        raise ForbiddenPathError(message.schema_file, f"more than {_MAX_SCHEMA_FILE_BYTES} bytes for a schema")
    interval = _checked_interval(message.offset_interval)
    if interval is not None and not message.data_paths:
        # Known of version 0.265 of the reference implementation, when it re-executes any step but the first.
        expected = f"files with offsets {interval.start} to {interval.end}"
        raise MalformedError("TransformRequestInput.data_paths", expected=expected, found="none")
    return TransformInput(
        dataset_id=str(message.dataset_id),
        alias=message.query_alias,
        vocabulary=_vocabulary_of(message.vocab),
        schema=_read_schema(schema_file),
        slices=tuple(folders.get_input(each) for each in message.data_paths),
        hashes=_hashes_of(message.data_paths),
        offset_interval=interval,
        watermarks=tuple(
            Watermark(system_time=mark.system_time, event_time=mark.event_time) for mark in message.explicit_watermarks
        ),
    )


def _hashes_of(paths: Sequence[str]) -> tuple[Multihash, ...]:
    """Read the hashes by which a caller calls its slices; none where it calls one otherwise."""
    try:
        return tuple(Multihash.parse(Path(path).name) for path in paths)
    except MalformedError:
        return ()


def _vocabulary_of(message: engine_messages.DatasetVocabulary) -> Vocabulary:
    return Vocabulary.of(
        SetVocab(
            offset_column=message.offset_column,
            operation_type_column=message.operation_type_column,
            system_time_column=message.system_time_column,
            event_time_column=message.event_time_column,
        )
    )


def _checked_interval(interval: OffsetInterval | None) -> OffsetInterval | None:
    if interval is None:
        return None
    _check_offset("offset_interval", interval.end)
    if interval.start > interval.end:
        raise MalformedError("offset_interval", expected=f"an end from {interval.start}", found=interval.end)
    return interval


def _check_offset(name: str, offset: int) -> None:
    if offset > _MAX_OFFSET:
        raise MalformedError(name, expected=f"at most {_MAX_OFFSET}", found=offset)


def _read_schema(path: Path) -> DataSchema:

    try:
        return data_schema_of(pq.read_schema(path))
    except (pa.ArrowException, OSError) as error:
        raise MalformedError("Parquet file", where=path.name, expected="a readable schema", found=error) from error
    except UnsupportedError as error:
        raise InvalidQueryError(f"an input cannot be read: {error}") from error


def _one_query(transform: TransformSql) -> str:
    """Write steps as one query, each but the last a named table of the last."""
    steps = transform.queries or ()
    if transform.query is not None:
        steps = (*steps, SqlQueryStep(query=transform.query))
    if not steps:
        raise InvalidQueryError("there is no query")
    if len(steps) == 1:
        return steps[0].query
    tables = []
    for step in steps[:-1]:
        if step.alias is None:
            raise InvalidQueryError("only the last query may be without an alias")
        # Line ends, so that a comment at the end of a step ends there.
        tables.append(f"{quote_spark_name(step.alias)} AS (\n{step.query}\n)")
    return f"WITH {', '.join(tables)}\nSELECT * FROM (\n{steps[-1].query}\n)"
