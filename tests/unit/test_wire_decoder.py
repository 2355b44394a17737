"""Blocks that a stranger may send: each wrong in one way, rejected for it, at the byte where it is wrong."""

import time
from typing import Any

import flatbuffers
import pytest

from odf_protocol.block import decode_block, encode_block
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, OdfError, UnsupportedError
from odf_protocol.events import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeBool,
    DataTypeOption,
    ExtraAttributes,
    ReadStepCsv,
    Seed,
    SetDataSchema,
    SetInfo,
)
from odf_protocol.timestamp import Timestamp
from odf_protocol.wire.envelope import METADATA_BLOCK_CODE
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES, MAX_DEPTH, MAX_VECTOR_LENGTH
from support.chains import NOON, ChainBuilder, add_rows, hash_of, push_source


def encoded(event: Any, **header: Any) -> bytes:
    fields = {"system_time": NOON, "prev_block_hash": hash_of("prev"), "sequence_number": 1}
    return encode_block(event, **(fields | header))


# SetInfo{description: "foo"}, first block, 120 bytes. What lies where:
#   0 root offset, 10 vtable of Manifest, 20 Manifest, 24 offset of content, 28 version, 32 kind, 44 length of content,
#  48 root offset, 54 vtable of MetadataBlock, 68 MetadataBlock, 72 offset of event, 79 tag of event, 80 system time,
#  98 vtable of SetInfo, 104 SetInfo, 108 offset of description, 112 length of description, 116 description
SET_INFO = encoded(
    SetInfo(description="foo"),
    system_time=Timestamp.parse("2050-01-01T12:00:00Z"),
    prev_block_hash=None,
    sequence_number=0,
)


def patched(position: int, new: bytes, base: bytes = SET_INFO) -> bytes:
    return base[:position] + new + base[position + len(new) :]


def replaced(old: bytes, new: bytes, base: bytes) -> bytes:
    assert base.count(old) == 1
    assert len(old) == len(new)
    return base.replace(old, new)


def enveloped(content: bytes) -> bytes:
    builder = flatbuffers.Builder()
    vector = builder.CreateByteVector(content)
    builder.StartObject(3)
    builder.PrependInt64Slot(0, METADATA_BLOCK_CODE, 0)
    builder.PrependInt32Slot(1, 3, 0)
    builder.PrependUOffsetTRelativeSlot(2, vector, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def schema_block(make_type: Any) -> bytes:
    """A SetDataSchema with one column whose type ``make_type(builder)`` returns as tag and table."""
    builder = flatbuffers.Builder()
    tag, type_ = make_type(builder)
    name = builder.CreateString("a")
    column = field(builder, name, tag, type_)
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(column)
    columns = builder.EndVector()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, columns, 0)
    schema = builder.EndObject()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(1, schema, 0)
    event = builder.EndObject()
    builder.StartObject(5)
    builder.Prep(4, 16)
    builder.head -= 16
    builder.Bytes[builder.head : builder.head + 16] = (2024).to_bytes(4, "little") + b"\1" + bytes(11)
    builder.PrependStructSlot(0, builder.Offset(), 0)
    builder.PrependUint8Slot(3, 10, 0)
    builder.PrependUOffsetTRelativeSlot(4, event, 0)
    builder.Finish(builder.EndObject())
    return enveloped(bytes(builder.Output()))


def field(builder: flatbuffers.Builder, name: int, tag: int, type_: int) -> int:
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUint8Slot(1, tag, 0)
    builder.PrependUOffsetTRelativeSlot(2, type_, 0)
    return int(builder.EndObject())


def unfolding_type(builder: flatbuffers.Builder) -> tuple[int, int]:
    """Structs of ten fields that are all one struct of ten fields, and so on: small in bytes, huge as an object."""
    builder.StartObject(0)
    tag, type_ = 2, builder.EndObject()
    for _ in range(12):
        name = builder.CreateString("a")
        column = field(builder, name, tag, type_)
        builder.StartVector(4, 10, 4)
        for _ in range(10):
            builder.PrependUOffsetTRelative(column)
        columns = builder.EndVector()
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, columns, 0)
        tag, type_ = 21, builder.EndObject()
    return tag, type_


def nested_options(count: int) -> SetDataSchema:
    type_: Any = DataTypeBool()
    for _ in range(count):
        type_ = DataTypeOption(inner=type_)
    return SetDataSchema(schema=DataSchema(fields=(DataField(name="a", type=type_),)))


def extra(attributes: dict[str, int]) -> bytes:
    return encoded(AddData(extra=ExtraAttributes.of(attributes)))


SEED = encoded(Seed(dataset_id=DatasetId(b"\x01" * 32), dataset_kind=DatasetKind.DERIVATIVE), prev_block_hash=None)
CSV = encoded(push_source(read=ReadStepCsv(header=True)))
CSV_WITHOUT = encoded(push_source(read=ReadStepCsv(header=False)))
HEADER = next(at for at, byte in enumerate(CSV) if byte != CSV_WITHOUT[at])
EXTRA = extra({"a": 12})
LINKED = encoded(SetInfo())

U32_MAX = b"\xff\xff\xff\xff"


def wrong(clause: str, words: str, raw: bytes) -> Any:
    return pytest.param(clause, raw, id=f"{clause} {words}")


MALFORMED = [
    wrong("WIRE-1", "empty", b""),
    wrong("WIRE-1", "kind-of-a-snapshot", patched(32, b"\1\0\x40")),
    wrong("WIRE-1", "kind-absent", patched(14, b"\0\0")),
    wrong("WIRE-1", "content-absent", patched(18, b"\0\0")),
    wrong("WIRE-1", "content-empty", enveloped(b"")),
    wrong("WIRE-5", "cut", SET_INFO[:-8]),
    wrong("WIRE-5", "root-outside", patched(0, U32_MAX)),
    wrong("WIRE-5", "root-offset-0", patched(0, bytes(4))),
    wrong("WIRE-5", "vtable-before-the-buffer", patched(20, b"\x18\0\0\0")),
    wrong("WIRE-5", "vtable-behind-the-buffer", patched(20, b"\x00\xff\xff\xff")),
    wrong("WIRE-5", "vtable-shorter-than-its-head", patched(10, b"\2\0")),
    wrong("WIRE-5", "vtable-of-odd-length", patched(10, b"\x09\0")),
    wrong("WIRE-5", "vtable-behind-the-end", patched(98, b"\6\x10")),
    wrong("WIRE-5", "table-of-no-bytes", patched(12, b"\0\0")),
    wrong("WIRE-5", "table-behind-the-end", patched(12, b"\0\2")),
    wrong("WIRE-5", "field-over-the-vtable-offset", patched(102, b"\2\0")),
    wrong("WIRE-5", "field-behind-its-table", patched(102, b"\x08\0")),
    wrong("WIRE-5", "field-across-the-end-of-its-table", patched(58, b"\x10\0")),
    wrong("WIRE-5", "content-behind-the-end", patched(44, b"\x50\0\0\0")),
    wrong("WIRE-5", "content-of-4-gigabytes", patched(44, U32_MAX)),
    wrong("WIRE-5", "event-outside", patched(72, b"\0\1\0\0")),
    wrong("WIRE-5", "event-offset-0", patched(72, bytes(4))),
    wrong("WIRE-5", "text-behind-the-end", patched(112, b"\4\0\0\0")),
    wrong("WIRE-6", "root-not-aligned", patched(0, b"\x16\0\0\0")),
    wrong("WIRE-6", "event-not-aligned", patched(72, b"\x21\0\0\0")),
    wrong("WIRE-6", "text-not-aligned", patched(108, b"\5\0\0\0")),
    wrong("WIRE-7", "nested-too-deep", encoded(nested_options(MAX_DEPTH))),
    wrong("WIRE-8", "parts-shared-until-they-are-too-many", schema_block(unfolding_type)),
    wrong("WIRE-9", "not-utf-8", patched(116, b"\xff")),
    wrong("WIRE-9", "surrogate", patched(116, b"\xed\xa0\x80")),
    wrong("WIRE-9", "no-zero-after-the-text", patched(119, b"o")),
    wrong("WIRE-10", "no-system-time", patched(58, b"\0\0")),
    wrong("WIRE-10", "no-event", patched(64, bytes(4))),
    wrong("WIRE-10", "no-dataset-id", replaced(b"\x08\0\x0c\0\x08\0\x04\0", b"\x08\0\x0c\0\0\0\x04\0", SEED)),
    wrong("WIRE-11", "tag-without-value", patched(66, b"\0\0")),
    wrong("WIRE-11", "value-without-tag", patched(64, b"\0\0")),
    wrong("WIRE-12", "day-0", patched(84, b"\0\0")),
    wrong("WIRE-12", "day-366-of-a-common-year", patched(84, b"\x6e\1")),
    wrong("WIRE-12", "year-0", patched(80, bytes(4))),
    wrong("WIRE-12", "year-10000", patched(80, b"\x10\x27\0\0")),
    wrong("WIRE-12", "second-86400", patched(88, b"\x80\x51\1\0")),
    wrong("WIRE-12", "leap-second", patched(92, b"\0\xca\x9a\x3b")),
    wrong("WIRE-12", "padding-of-a-time", patched(86, b"\1")),
    wrong("WIRE-12", "hash-too-short-for-its-kind", replaced(b"\x22\0\0\0\x16\x20", b"\x21\0\0\0\x16\x1f", LINKED)),
    wrong("WIRE-12", "hash-length-not-in-shortest-form", replaced(b"\x16\x20", b"\x96\x00", LINKED)),
    wrong("WIRE-12", "key-too-short", replaced(b"\x22\0\0\0\xed\x01", b"\x21\0\0\0\xed\x01", SEED)),
    wrong("WIRE-12", "bool-2", patched(HEADER, b"\2", CSV)),
    wrong("WIRE-12", "attributes-not-an-object", replaced(b'{"a":12}', b'["a",12]', EXTRA)),
    wrong("WIRE-12", "attributes-not-json", replaced(b'{"a":12}', b'{"a":1_}', EXTRA)),
    wrong(
        "WIRE-12",
        "attributes-with-a-key-twice",
        replaced(b'{"abcd":12}', b'{"":1,"":2}', extra({"abcd": 12})),
    ),
    wrong(
        "WIRE-12",
        "attributes-not-a-number",
        replaced(b'{"a":123}', b'{"a":NaN}', extra({"a": 123})),
    ),
]

UNSUPPORTED = [
    wrong("WIRE-3", "version-1", patched(28, b"\1")),
    wrong("WIRE-3", "version-4", patched(28, b"\4")),
    wrong("WIRE-13", "event-14", patched(79, b"\x0e")),
    wrong("WIRE-13", "event-0", patched(79, b"\0")),
    wrong("WIRE-13", "event-255", patched(79, b"\xff")),
    wrong("WIRE-13", "field-that-we-do-not-know", patched(54, b"\x10\0")),
    wrong("WIRE-13", "kind-of-dataset", replaced(b"\1\0\0\0\4\0\0\0\x22\0\0\0", b"\2\0\0\0\4\0\0\0\x22\0\0\0", SEED)),
    wrong("WIRE-13", "key-of-another-kind", replaced(b"\xed\x01", b"\xec\x01", SEED)),
]


@pytest.mark.parametrize(("clause", "raw"), MALFORMED)
def test_malformed_block_is_rejected_and_the_place_is_named(clause: str, raw: bytes) -> None:
    with pytest.raises(MalformedError) as caught:
        decode_block(raw, expected_hash=None)
    assert caught.value.expected is not None
    assert clause in ("WIRE-1", "WIRE-8") or isinstance(caught.value.where, int)


@pytest.mark.parametrize(("clause", "raw"), UNSUPPORTED)
def test_block_with_something_unknown_is_not_guessed_at(clause: str, raw: bytes) -> None:
    with pytest.raises(UnsupportedError):
        decode_block(raw, expected_hash=None)


def test_block_that_unfolds_is_rejected_soon() -> None:
    started = time.process_time()
    with pytest.raises(MalformedError, match="tables"):
        decode_block(schema_block(unfolding_type), expected_hash=None)
    assert time.process_time() - started < 20  # it would take years


def test_too_large_block_is_rejected_before_it_is_hashed() -> None:
    """WIRE-4."""
    with pytest.raises(MalformedError, match=str(MAX_BLOCK_SIZE_BYTES)):
        decode_block(bytes(MAX_BLOCK_SIZE_BYTES + 1), expected_hash=hash_of("a"))


def test_too_long_list_is_rejected() -> None:
    raw = encoded(SetInfo(keywords=("",) * (MAX_VECTOR_LENGTH + 1)))
    with pytest.raises(MalformedError, match=r"SetInfo\.keywords"):
        decode_block(raw, expected_hash=None)


def test_deepest_nesting_allowed_is_accepted() -> None:
    # MetadataBlock, SetDataSchema, DataSchema, DataField, the options and the type inside them.
    event = nested_options(MAX_DEPTH - 5)
    assert decode_block(encoded(event), expected_hash=None).event == event
    with pytest.raises(MalformedError):
        decode_block(encoded(nested_options(MAX_DEPTH - 4)), expected_hash=None)


def test_another_hash_is_rejected_before_anything_is_decoded() -> None:
    """WIRE-2."""
    with pytest.raises(MalformedError, match="expected hash f1620"):
        decode_block(b"not a block", expected_hash=hash_of("a"))


def test_parts_may_be_shared_if_they_are_few() -> None:
    """Our encoder shares nothing; another may."""

    def shared(builder: flatbuffers.Builder) -> tuple[int, int]:
        builder.StartObject(0)
        leaf = builder.EndObject()
        builder.StartObject(5)
        builder.PrependUint8Slot(0, 24, 0)
        builder.PrependUOffsetTRelativeSlot(1, leaf, 0)
        builder.PrependUint8Slot(2, 24, 0)
        builder.PrependUOffsetTRelativeSlot(3, leaf, 0)
        return 18, builder.EndObject()

    event = decode_block(schema_block(shared), expected_hash=None).event
    assert isinstance(event, SetDataSchema)


def test_errors_of_hostile_bytes_are_one_short_line() -> None:
    raw = encoded(SetInfo(description="x\n" * 10_000))
    raw = raw.replace(b"x\n" * 10_000, b"\xff\n" * 10_000)
    with pytest.raises(OdfError) as caught:
        decode_block(raw, expected_hash=None)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_chain_of_version_2_is_decoded_alike() -> None:
    event = add_rows(0, 9)
    chain = ChainBuilder(version=2)
    assert chain.next(event).event == event
    assert chain.next(event).version == 2
