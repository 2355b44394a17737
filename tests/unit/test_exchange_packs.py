"""Packs of blocks (EX-7, EX-8, EX-11)."""

import struct

import pytest
import zstandard

from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import MAX_PACK_BLOCKS, MAX_PACK_BYTES, MAX_PACK_RAW_BYTES, PACK_TARGET_BYTES
from odf_protocol.exchange.packs import PackedBlock, decode_pack, encode_pack
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES

BLOCKS = (
    PackedBlock(b"seed", b"signature", None),
    PackedBlock(b"plain"),
    PackedBlock(b"step", None, b"replay record"),
    PackedBlock(b"both", b"s" * 64, b"r" * 5_000),
)


def packed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


def number(value: int) -> bytes:
    return struct.pack("<I", value)


def test_pack_gives_back_blocks_signatures_and_records() -> None:
    body, count = encode_pack(BLOCKS)
    assert count == len(BLOCKS)
    assert decode_pack(body) == BLOCKS


def test_empty_pack_is_a_pack() -> None:
    body, count = encode_pack(())
    assert (count, decode_pack(body)) == (0, ())


def test_full_pack_closes_and_tells_how_many_blocks_it_took() -> None:
    blocks = [PackedBlock(bytes([n]) * (PACK_TARGET_BYTES // 4)) for n in range(10)]
    body, count = encode_pack(blocks)
    assert count == 4
    assert decode_pack(body) == tuple(blocks[:4])


def test_block_of_the_largest_size_fits_into_a_pack_that_was_almost_full() -> None:
    blocks = [PackedBlock(b"a" * (PACK_TARGET_BYTES - 100)), PackedBlock(b"b" * MAX_BLOCK_SIZE_BYTES)]
    body, count = encode_pack(blocks)
    assert count == 2
    assert len(body) <= MAX_PACK_BYTES
    assert decode_pack(body) == tuple(blocks)


def test_pack_of_many_tiny_blocks_is_closed_by_their_number() -> None:
    body, count = encode_pack(PackedBlock(b"x") for _ in range(MAX_PACK_BLOCKS + 5))
    assert count == MAX_PACK_BLOCKS
    assert len(decode_pack(body)) == MAX_PACK_BLOCKS


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"no zstd at all", id="not-compressed"),
        pytest.param(packed(b"ODFPACK2" + number(0) * 2), id="another-magic"),
        pytest.param(packed(b"ODFPACK1"), id="no-end"),
        pytest.param(packed(b"ODFPACK1" + number(4) + b"ab"), id="block-cut"),
        pytest.param(packed(b"ODFPACK1" + number(2) + b"ab" + number(0)), id="cut-between-fields"),
        pytest.param(packed(b"ODFPACK1" + number(2) + b"ab" + number(0) * 3), id="count-missing"),
        pytest.param(packed(b"ODFPACK1" + number(2) + b"ab" + number(0) * 3 + number(2)), id="count-wrong"),
        pytest.param(packed(b"ODFPACK1" + number(0) * 2 + b"more"), id="bytes-after-the-end"),
        pytest.param(packed(b"ODFPACK1" + number(MAX_BLOCK_SIZE_BYTES + 1)), id="block-too-large"),
        pytest.param(packed(b"ODFPACK1" + number(1) + b"a" + number(2**32 - 1)), id="signature-too-large"),
        pytest.param(packed(b"\0" * (MAX_PACK_RAW_BYTES + 1)), id="bomb"),
        pytest.param(b"\0" * (MAX_PACK_BYTES + 1), id="body-too-large"),
    ],
)
def test_what_is_no_pack_is_rejected(body: bytes) -> None:
    with pytest.raises(MalformedError, match="pack"):
        decode_pack(body)


def test_bomb_of_gigabytes_is_rejected_without_unpacking_it() -> None:
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    zeros = b"\0" * (16 * 1024 * 1024)
    body = b"".join(compressor.compress(zeros) for _ in range(64)) + compressor.flush()
    assert len(body) < MAX_PACK_BYTES
    with pytest.raises(MalformedError, match="unpacked"):
        decode_pack(body)


def test_window_larger_than_readers_must_support_is_rejected() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    body = compressor.compress(b"ODFPACK1" + number(0) * 2) + compressor.flush()
    with pytest.raises(MalformedError, match="pack"):
        decode_pack(body)


def test_any_cut_of_a_pack_is_noticed() -> None:
    body, _ = encode_pack(BLOCKS)
    for end in range(len(body)):
        with pytest.raises(MalformedError):
            decode_pack(body[:end])
