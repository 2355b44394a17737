"""Putting our requests into ODF's words, and its answers into ours.

ODF's contract lacks two things. An engine does not hear of an earlier watermark, so a step keeps it where the engine
states none that is newer. And an engine cannot be asked what a query would give, so a query is tried over no rows.

Source: clauses ADDED-7 to ADDED-9 in ``spec/plug-ins/foreign.md``.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines import contract
from odf_engines.contract import QueryTable
from odf_engines.errors import EngineFailureError, InvalidQueryError
from odf_engines.host.arrow_texts import schema_text
from odf_foreign.added.description import OUTPUTS
from odf_protocol.did import DatasetId
from odf_protocol.engine_messages import (
    DatasetVocabulary,
    TransformRequestInput,
    TransformResponse,
    TransformResponseInvalidQuery,
    TransformResponseSuccess,
    WireTransformRequest,
    WireWatermark,
)
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import DataSchema, TransformSql
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

_DATA = "data"
_CHECKPOINT = "checkpoint"
_NONE = DatasetId(bytes(32))  # a query that is tried is of no dataset yet
_OUTPUT_ALIAS = "output"  # an engine gets no names of this node


def translate(request: contract.TransformRequest, folder: Path, scratch: Path) -> WireTransformRequest:
    """Put a step into ODF's words.

    Args:
        request: Its paths are those of the sandbox.
        folder: For the results.
        scratch: Existing folder for files without rows, which say what columns inputs have.

    Raises:
        InvalidQueryError: An input has a type that no such file can hold.
    """
    inputs = []
    for number, each in enumerate(request.inputs):
        interval = each.offset_interval if each.slices else None
        inputs.append(
            TransformRequestInput(
                dataset_id=DatasetId.parse(each.dataset_id),
                dataset_alias=_input_alias(number),
                query_alias=each.alias,
                vocab=_words(each.vocabulary),
                offset_interval=interval,
                data_paths=() if interval is None else tuple(map(str, each.slices)),
                schema_file=_schema_file(each.schema, scratch, number),
                explicit_watermarks=tuple(
                    WireWatermark(system_time=mark.system_time, event_time=mark.event_time) for mark in each.watermarks
                ),
            )
        )
    return WireTransformRequest(
        dataset_id=DatasetId.parse(request.dataset_id),
        dataset_alias=_OUTPUT_ALIAS,
        system_time=request.system_time,
        vocab=_words(request.vocabulary),
        transform=request.transform,
        query_inputs=tuple(inputs),
        next_offset=request.next_offset,
        prev_checkpoint_path=None if request.prev_checkpoint is None else str(request.prev_checkpoint),
        new_checkpoint_path=f"{OUTPUTS}/{folder.name}/{_CHECKPOINT}",
        new_data_path=f"{OUTPUTS}/{folder.name}/{_DATA}",
    )


def trial_of(
    transform: TransformSql, tables: Sequence[QueryTable], vocabulary: Vocabulary, folder: Path, scratch: Path
) -> WireTransformRequest:
    """Make a step without rows, to see whether a query can be run.

    Raises:
        InvalidQueryError: As ``translate``.
    """
    inputs = tuple(
        contract.TransformInput(
            dataset_id=str(_NONE),
            alias=each.name,
            vocabulary=each.vocabulary,
            schema=each.schema,
            slices=(),
            offset_interval=None,
        )
        for each in tables
    )
    step = contract.TransformRequest(
        dataset_id=str(_NONE),
        transform=transform,
        vocabulary=vocabulary,
        inputs=inputs,
        system_time=Timestamp.from_unix_ms(0),
        next_offset=0,
    )
    return translate(step, folder, scratch)


def success_of(answer: TransformResponse) -> TransformResponseSuccess:
    """Return an answer that is a success.

    Raises:
        InvalidQueryError, EngineFailureError: It is none; whose fault that is, in the engine's words.
    """
    if isinstance(answer, TransformResponseInvalidQuery):
        raise InvalidQueryError(answer.message)
    if not isinstance(answer, TransformResponseSuccess):
        stated = getattr(answer, "message", type(answer).__name__)
        raise EngineFailureError(f"it reports a fault of its own: {stated}")
    return answer


def answer_of(request: contract.TransformRequest, answer: TransformResponseSuccess, folder: Path) -> dict[str, object]:
    """Put a success into the words of our contract; see ``host.worker`` for where it goes.

    Raises:
        EngineFailureError: It contradicts itself or the request.
    """
    interval = answer.new_offset_interval
    if interval is not None and interval.start != request.next_offset:
        raise EngineFailureError(f"asked for rows from offset {request.next_offset}, it says {interval.start}")
    if interval is not None and interval.end < interval.start:
        raise EngineFailureError(f"it says that its rows go from offset {interval.start} to {interval.end}")
    rows = 0 if interval is None else interval.row_count
    watermark = max(filter(None, (answer.new_watermark, request.prev_watermark)), default=None)
    return {
        "schema": schema_text(read_schema(folder)),
        "data": _DATA if rows else None,
        # It does not say what it read.
        "inputs": [None for _ in request.inputs],
        "rows_out": rows,
        "late_rows": 0,
        "watermark_ms": None if watermark is None else watermark.unix_ms,
        "checkpoint": _CHECKPOINT if (folder / _CHECKPOINT).exists() else None,
    }


def read_schema(folder: Path) -> pa.Schema:
    """Read which columns an output has; a step without rows leaves a file all the same.

    Raises:
        EngineFailureError: There is no such file, or it is no Parquet.
    """
    path = folder / _DATA
    if not path.is_file():
        raise EngineFailureError("it left no file of rows, so the columns of its output are unknown")
    try:
        return pq.read_schema(path).remove_metadata()
    except (pa.ArrowException, OSError) as error:
        raise EngineFailureError(f"its file of rows is no Parquet ({error})"[:400]) from error


def _schema_file(schema: DataSchema, scratch: Path, number: int) -> str:
    path = scratch / f"schema-{number}.parquet"
    try:
        pq.write_table(arrow_schema_of(schema).empty_table(), path, store_schema=True)
    except UnsupportedError as error:
        raise InvalidQueryError(f"{_input_alias(number)}: {error}") from error
    return str(path)


def _input_alias(number: int) -> str:
    return f"input-{number}"


def _words(vocabulary: Vocabulary) -> DatasetVocabulary:
    offset, op, system_time, event_time = vocabulary.columns
    return DatasetVocabulary(
        offset_column=offset, operation_type_column=op, system_time_column=system_time, event_time_column=event_time
    )
