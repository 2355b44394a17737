"""The bytes of step records: canonical JSON, signed.

A record's identity is the hash of its payload: two parties who describe one step alike have one record, whoever signed.

Source: clauses REPLAY-1 to REPLAY-5 and REPLAY-13 in ``spec/extensions/replay.md``.
"""

from dataclasses import asdict, dataclass, field
from typing import Annotated, Final, Literal

import msgspec

from odf_protocol.canonical_json import (
    Count,
    Document,
    ShortText,
    Text,
    decode_canonical,
    encode_canonical,
    parse_exact,
)
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.events import OffsetInterval
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, SignedDocument, sign_document
from odf_protocol.step_metrics import MAX_INPUTS, StepMetrics
from odf_protocol.step_record import EngineDocument, InputWatermark, StepInput, StepRecord, StepSlice
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

MAX_RECORD_BYTES: Final = 4 * 1024 * 1024
"""Payload of a record.  # guess: a step that reads 20,000 slices, each with two hashes"""
_MAX_ITEMS: Final = 100_000  # guess: slices or watermarks of one input; the size limit is reached before
_MAX_SETTINGS: Final = 256  # guess
_SettingText = Annotated[str, msgspec.Meta(max_length=4096)]


class _Vocabulary(Document, frozen=True, kw_only=True):
    offset: ShortText
    op: ShortText
    system_time: ShortText
    event_time: ShortText


class _Slice(Document, frozen=True, kw_only=True):
    logical_hash: Text
    physical_hash: Text


class _Interval(Document, frozen=True, kw_only=True):
    start: Count
    end: Count


class _Watermark(Document, frozen=True, kw_only=True):
    system_time: Text
    event_time: Text


class _Input(Document, frozen=True, kw_only=True):
    dataset: Text
    alias: ShortText
    vocabulary: _Vocabulary
    slices: Annotated[tuple[_Slice, ...], msgspec.Meta(max_length=_MAX_ITEMS)]
    offset_interval: _Interval | None = None
    watermarks: Annotated[tuple[_Watermark, ...], msgspec.Meta(max_length=_MAX_ITEMS)]


class _Record(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["replay-record"]
    dataset: Text
    engine: EngineDocument
    settings: Annotated[dict[ShortText, _SettingText], msgspec.Meta(max_length=_MAX_SETTINGS)]
    limits: Annotated[dict[ShortText, Count], msgspec.Meta(max_length=_MAX_SETTINGS)]
    transform: Text
    vocabulary: _Vocabulary
    inputs: Annotated[tuple[_Input, ...], msgspec.Meta(min_length=1, max_length=MAX_INPUTS)]
    system_time: Text
    next_offset: Count
    prev_checkpoint: Text | None = None
    prev_watermark: Text | None = None
    statistics: StepMetrics | None = None


@dataclass(frozen=True, slots=True)
class SignedStepRecord:
    """A record whose signature is good; made by ``decode_step_record`` only.

    Attributes:
        record: What it says.
        hash: SHA3-256 of the payload; the record's identity.
        signer: Whose key signed.
        raw: The document as received.
    """

    record: StepRecord
    hash: Multihash
    signer: DidKey
    raw: bytes = field(repr=False)


def encode_step_record(record: StepRecord) -> bytes:
    """Return the payload of a record.

    Raises:
        ValueError: Something that no record can say.
    """
    return encode_canonical(
        _Record(
            version=1,
            type="replay-record",
            dataset=str(record.dataset_id),
            engine=EngineDocument.of(record.engine),
            settings=dict(record.settings),
            limits=dict(record.limits),
            transform=str(record.transform),
            vocabulary=_Vocabulary(**asdict(record.vocabulary)),
            inputs=tuple(_input_document(item) for item in record.inputs),
            system_time=str(record.system_time),
            next_offset=record.next_offset,
            prev_checkpoint=None if record.prev_checkpoint is None else str(record.prev_checkpoint),
            prev_watermark=None if record.prev_watermark is None else str(record.prev_watermark),
            statistics=record.statistics,
        )
    )


def sign_step_record(private_key: bytes, record: StepRecord) -> bytes:
    """Sign a record and return the document as stored and sent."""
    return sign_document(private_key, Purpose.STEP_RECORD, encode_step_record(record)).to_bytes()


def decode_step_record(raw: bytes) -> SignedStepRecord:
    """Verify and read a signed record; what it says about a block is checked by ``check_record_describes``.

    Raises:
        MalformedError: Not a signed record.
        RejectedError: Its signature is not good.
    """
    document = SignedDocument.decode(raw, Purpose.STEP_RECORD, max_payload_bytes=MAX_RECORD_BYTES)
    stated = decode_canonical(document.payload, _Record, what="step record", max_bytes=MAX_RECORD_BYTES)
    checkpoint, watermark = stated.prev_checkpoint, stated.prev_watermark
    record = StepRecord(
        dataset_id=parse_exact(DatasetId, stated.dataset, "step record dataset"),
        engine=stated.engine.to_identity(),
        settings=stated.settings,
        limits=stated.limits,
        transform=parse_exact(Multihash, stated.transform, "transform hash"),
        vocabulary=Vocabulary(**msgspec.structs.asdict(stated.vocabulary)),
        inputs=tuple(_input(item) for item in stated.inputs),
        system_time=parse_exact(Timestamp, stated.system_time, "system time"),
        next_offset=stated.next_offset,
        prev_checkpoint=None if checkpoint is None else parse_exact(Multihash, checkpoint, "checkpoint"),
        prev_watermark=None if watermark is None else parse_exact(Timestamp, watermark, "watermark"),
        statistics=stated.statistics,
    )
    return SignedStepRecord(record, Multihash.of_sha3_256(document.payload), document.signer, bytes(raw))


def _input_document(item: StepInput) -> _Input:
    interval = item.offset_interval
    return _Input(
        dataset=str(item.dataset_id),
        alias=item.alias,
        vocabulary=_Vocabulary(**asdict(item.vocabulary)),
        slices=tuple(
            _Slice(logical_hash=str(part.logical_hash), physical_hash=str(part.physical_hash)) for part in item.slices
        ),
        offset_interval=None if interval is None else _Interval(start=interval.start, end=interval.end),
        watermarks=tuple(
            _Watermark(system_time=str(mark.system_time), event_time=str(mark.event_time)) for mark in item.watermarks
        ),
    )


def _input(stated: _Input) -> StepInput:
    interval = stated.offset_interval
    if interval is not None and interval.end < interval.start:
        raise RejectedError("REPLAY-4 interval-is-not-empty", expected=f"at least {interval.start}", found=interval.end)
    return StepInput(
        dataset_id=parse_exact(DatasetId, stated.dataset, "input dataset"),
        alias=stated.alias,
        vocabulary=Vocabulary(**msgspec.structs.asdict(stated.vocabulary)),
        slices=tuple(
            StepSlice(
                parse_exact(Multihash, part.logical_hash, "logical hash"),
                parse_exact(Multihash, part.physical_hash, "physical hash"),
            )
            for part in stated.slices
        ),
        offset_interval=None if interval is None else OffsetInterval(start=interval.start, end=interval.end),
        watermarks=tuple(
            InputWatermark(
                parse_exact(Timestamp, mark.system_time, "watermark"),
                parse_exact(Timestamp, mark.event_time, "watermark"),
            )
            for mark in stated.watermarks
        ),
    )
