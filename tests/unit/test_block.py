import dataclasses

import pytest

from odf_protocol.block import Block, UnsupportedBlockError, decode_block, encode_block
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import AddData, DataField, DataSchema, DataTypeTimestamp, SetDataSchema, SetInfo, TimeUnit
from odf_protocol.events.equality import means_the_same
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import arrow_schema_of
from support.chains import NOON, hash_of

HEADER = {"system_time": NOON, "prev_block_hash": hash_of("prev"), "sequence_number": 1}
RAW = encode_block(SetInfo(), **HEADER)  # type: ignore[arg-type]


def test_block_is_made_from_bytes_and_nothing_else() -> None:
    block = decode_block(RAW, expected_hash=None)
    with pytest.raises(TypeError):
        dataclasses.replace(block, sequence_number=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        block.sequence_number = 2  # type: ignore[misc]
    assert Block(RAW, expected_hash=block.hash) == block


def test_buffer_is_copied_so_that_it_cannot_change_under_the_block() -> None:
    buffer = bytearray(RAW)
    block = decode_block(buffer, expected_hash=None)
    buffer[0] ^= 1
    assert block.raw == RAW


def test_blocks_that_say_the_same_in_two_versions_are_two_blocks() -> None:
    other = decode_block(encode_block(SetInfo(), **HEADER, version=2), expected_hash=None)  # type: ignore[arg-type]
    block = decode_block(RAW, expected_hash=None)
    assert other.event == block.event
    assert other != block


@pytest.mark.parametrize("version", [0, 1, 4])
def test_version_we_do_not_write_is_our_mistake(version: int) -> None:
    """WIRE-3."""
    with pytest.raises(ValueError, match=f"version {version}"):
        encode_block(SetInfo(), **HEADER, version=version)  # type: ignore[arg-type]


@pytest.mark.parametrize("offset", [-1, 2**64])
def test_number_that_does_not_fit_is_our_mistake(offset: int) -> None:
    with pytest.raises(ValueError, match="prev_offset"):
        encode_block(AddData(prev_offset=offset), **HEADER)  # type: ignore[arg-type]


def test_missing_part_is_our_mistake() -> None:
    """WIRE-10."""
    with pytest.raises(ValueError, match="system_time"):
        encode_block(SetInfo(), **(HEADER | {"system_time": None}))  # type: ignore[arg-type]


def test_errors_state_expected_before_found() -> None:
    with pytest.raises(MalformedError, match=r"^malformed block: expected hash f1620\w+, found f1620\w+$"):
        decode_block(RAW, expected_hash=hash_of("other"))
    with pytest.raises(UnsupportedError, match=r"^unsupported block version: 9 \(supported: \(2, 3\)\)$"):
        decode_block(RAW[:28] + b"\x09" + RAW[29:], expected_hash=None)


def test_block_of_an_unknown_version_or_event_is_unsupported_and_keeps_its_bytes() -> None:
    """WIRE-13."""
    newer = bytearray(RAW)
    newer[28] = 4  # the version, by the annotated dump of ``odf-node inspect block``
    other = bytearray(RAW)
    other[79] = 99  # the event's tag
    for raw, what in ((bytes(newer), "block version: 4"), (bytes(other), "99")):
        with pytest.raises(UnsupportedBlockError, match=what) as caught:
            decode_block(raw, expected_hash=None)
        assert caught.value.raw == raw
        assert caught.value.hash == Multihash.of_sha3_256(raw)


def test_unit_that_an_old_writer_left_out_as_zero_reads_as_milliseconds() -> None:
    """WIRE-15."""

    def encoded(unit: TimeUnit | None) -> bytes:
        schema = DataSchema(fields=(DataField(name="t", type=DataTypeTimestamp(unit=unit)),))
        return encode_block(SetDataSchema(schema=schema), **HEADER)  # type: ignore[arg-type]

    def decoded(raw: bytes) -> DataSchema:
        event = decode_block(raw, expected_hash=None).event
        assert isinstance(event, SetDataSchema)
        assert event.schema is not None
        return event.schema

    left_out, milliseconds, seconds = (decoded(encoded(u)) for u in (None, TimeUnit.MILLISECOND, TimeUnit.SECOND))
    assert arrow_schema_of(left_out) == arrow_schema_of(milliseconds) != arrow_schema_of(seconds)
    assert means_the_same(left_out, milliseconds)
    assert not means_the_same(left_out, seconds)
    assert len({encoded(None), encoded(TimeUnit.MILLISECOND), encoded(TimeUnit.SECOND)}) == 3
