"""The chain state as bytes for our own storage: JSON, so that an operator can read it.

Source: not part of any protocol; every node can make it again from the blocks.
"""

import base64
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from odf_protocol.chain.state import ChainState, InputProgress, PushSource
from odf_protocol.coverage import Coverage
from odf_protocol.did import DatasetId
from odf_protocol.errors import CorruptError, OdfError
from odf_protocol.events import DataSchema, DatasetKind, SourceState
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from odf_protocol.wire.decoder import Decoder
from odf_protocol.wire.encoder import encode_root

FORMAT = 1


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything in text; ``schema`` is the table's FlatBuffer in base64."""

    format: int
    dataset_id: str
    kind: int
    head: str
    sequence_number: int
    system_time: str
    vocabulary: tuple[str, str, str, str]
    schema: str | None = None
    has_legacy_schema: bool = False
    has_polling_source: bool = False
    push_sources: tuple[tuple[str, str], ...] = ()
    transform_inputs: tuple[str, ...] | None = None
    has_data_block: bool = False
    last_offset: int | None = None
    checkpoint: str | None = None
    watermark: str | None = None
    highest_watermark: str | None = None
    source_state: tuple[str, str, str] | None = None
    inputs: tuple[tuple[str, str | None, int | None], ...] = ()
    earlier_inputs: tuple[tuple[str, str | None, int | None], ...] = ()
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    definitions: int = 0


def encode_state(state: ChainState) -> bytes:
    """Encode a state; equal states give equal bytes."""
    source = state.source_state
    return msgspec.json.encode(
        _Stored(
            format=FORMAT,
            dataset_id=str(state.dataset_id),
            kind=state.kind.value,
            head=str(state.head),
            sequence_number=state.sequence_number,
            system_time=str(state.system_time),
            vocabulary=state.vocabulary.columns,
            schema=None if state.schema is None else _encode_schema(state.schema),
            has_legacy_schema=state.has_legacy_schema,
            has_polling_source=state.has_polling_source,
            push_sources=tuple((source.name, source.fingerprint.hex()) for source in state.push_sources),
            transform_inputs=None if state.transform_inputs is None else tuple(map(str, state.transform_inputs)),
            has_data_block=state.has_data_block,
            last_offset=state.last_offset,
            checkpoint=_text(state.checkpoint),
            watermark=_text(state.watermark),
            highest_watermark=_text(state.highest_watermark),
            source_state=None if source is None else (source.source_name, source.kind, source.value),
            inputs=tuple(map(_progress_text, state.inputs)),
            earlier_inputs=tuple(map(_progress_text, state.earlier_inputs)),
            coverage=state.coverage,
            definitions=state.definitions,
        )
    )


def decode_state(data: bytes) -> ChainState:
    """Decode a state.

    Raises:
        CorruptError: Not what ``encode_state`` writes.
    """
    try:
        return _state_of(msgspec.json.decode(data, type=_Stored))
    except (msgspec.MsgspecError, OdfError, ValueError) as error:
        raise CorruptError(f"stored chain state: {error}") from error


class StoredReads(NamedTuple):
    """What a chain has read and made so far, without the rest of its state.

    ``taken`` is as ``ChainState.progress_by_input``, ``rows`` their number, ``has_schema`` whether there is any schema.
    """

    taken: Mapping[DatasetId, InputProgress]
    rows: int
    has_schema: bool
    has_polling_source: bool


class _Reads(msgspec.Struct, frozen=True, kw_only=True):
    schema: str | None = None
    has_legacy_schema: bool = False
    has_polling_source: bool = False
    last_offset: int | None = None
    inputs: tuple[tuple[str, str | None, int | None], ...] = ()
    earlier_inputs: tuple[tuple[str, str | None, int | None], ...] = ()


def decode_reads(data: bytes) -> StoredReads:
    """Decode what a chain has read, in a fifth of the time of ``decode_state``.

    Raises:
        CorruptError: Not what ``encode_state`` writes.
    """
    try:
        stored = msgspec.json.decode(data, type=_Reads)
        taken = [_progress(*item) for item in (*stored.earlier_inputs, *stored.inputs)]
    except (msgspec.MsgspecError, OdfError, ValueError) as error:
        raise CorruptError(f"stored chain state: {error}") from error
    return StoredReads(
        {each.dataset_id: each for each in taken},
        0 if stored.last_offset is None else stored.last_offset + 1,
        stored.schema is not None or stored.has_legacy_schema,
        stored.has_polling_source,
    )


def _state_of(stored: _Stored) -> ChainState:
    if stored.format != FORMAT:
        raise ValueError(f"format {stored.format}")
    source = stored.source_state
    inputs = stored.transform_inputs
    return ChainState(
        dataset_id=DatasetId.parse(stored.dataset_id),
        kind=DatasetKind(stored.kind),
        head=Multihash.parse(stored.head),
        sequence_number=stored.sequence_number,
        system_time=Timestamp.parse(stored.system_time),
        vocabulary=Vocabulary(*stored.vocabulary),
        schema=None if stored.schema is None else Decoder(base64.b64decode(stored.schema)).decode_root(DataSchema),
        has_legacy_schema=stored.has_legacy_schema,
        has_polling_source=stored.has_polling_source,
        push_sources=tuple(PushSource(name, bytes.fromhex(digest)) for name, digest in stored.push_sources),
        transform_inputs=None if inputs is None else tuple(map(DatasetId.parse, inputs)),
        has_data_block=stored.has_data_block,
        last_offset=stored.last_offset,
        checkpoint=_hash(stored.checkpoint),
        watermark=_time(stored.watermark),
        highest_watermark=_time(stored.highest_watermark),
        source_state=None if source is None else SourceState(source_name=source[0], kind=source[1], value=source[2]),
        inputs=tuple(_progress(*item) for item in stored.inputs),
        earlier_inputs=tuple(_progress(*item) for item in stored.earlier_inputs),
        coverage=stored.coverage,
        definitions=stored.definitions,
    )


def _progress_text(item: InputProgress) -> tuple[str, str | None, int | None]:
    return str(item.dataset_id), _text(item.block_hash), item.offset


def _progress(name: str, head: str | None, offset: int | None) -> InputProgress:
    return InputProgress(DatasetId.parse(name), _hash(head), offset)


def _encode_schema(schema: DataSchema) -> str:
    return base64.b64encode(encode_root(schema)).decode("ascii")


def _text(value: Multihash | Timestamp | None) -> str | None:
    return None if value is None else str(value)


def _hash(text: str | None) -> Multihash | None:
    return None if text is None else Multihash.parse(text)


def _time(text: str | None) -> Timestamp | None:
    return None if text is None else Timestamp.parse(text)
