"""Packs: many raw blocks in one body, each with its detached signature and its step record (EX-7, EX-8).

The body is one zstd frame. Inside it, numbers are unsigned and little-endian::

    pack  = "ODFPACK1" entry* u32 0, u32 number of entries
    entry = u32 length > 0, block; u32 length, signature; u32 length, step record     (length 0: there is none)

The count at the end tells a whole pack from one that was cut. Nothing in a pack is believed: the receiver hashes each
block and checks its place in the chain.
"""

import io
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import zstandard

from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import (
    MAX_PACK_BLOCKS,
    MAX_PACK_BYTES,
    MAX_PACK_RAW_BYTES,
    MAX_SIGNATURE_BYTES,
    MAX_STEP_RECORD_BYTES,
    MAX_ZSTD_WINDOW_BYTES,
    PACK_TARGET_BYTES,
)
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES

PACK_MEDIA_TYPE: Final = "application/vnd.odf-node.pack+zstd"

_MAGIC: Final = b"ODFPACK1"
_LENGTH: Final = struct.Struct("<I")
_COMPRESSION_LEVEL: Final = 3  # as small as gzip on blocks, several times faster


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """One block on its way, with what belongs to it but not into its hash."""

    raw: bytes
    signature: bytes | None = None
    step_record: bytes | None = None


def encode_pack(blocks: Iterable[PackedBlock]) -> tuple[bytes, int]:
    """Pack blocks from the front of ``blocks`` until the pack is full.

    Returns:
        The body, and how many blocks are in it: all of ``blocks`` or as many as a pack holds, at least one if any.
    """
    parts = bytearray(_MAGIC)
    count = 0
    for block in blocks:
        for field in (block.raw, block.signature or b"", block.step_record or b""):
            parts += _LENGTH.pack(len(field))
            parts += field
        count += 1
        if len(parts) >= PACK_TARGET_BYTES or count == MAX_PACK_BLOCKS:
            break
    parts += _LENGTH.pack(0) + _LENGTH.pack(count)
    return zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compress(parts), count


def decode_pack(body: bytes) -> tuple[PackedBlock, ...]:
    """Read a pack from somebody who is not trusted.

    Raises:
        MalformedError: Too large before or after decompression, cut short, or not a pack.
    """
    if len(body) > MAX_PACK_BYTES:
        raise MalformedError("pack", expected=f"at most {MAX_PACK_BYTES} bytes", found=len(body))
    data = memoryview(_decompress(body))
    magic = bytes(data[: len(_MAGIC)])
    if magic != _MAGIC:
        raise MalformedError("pack", where=0, expected=repr(_MAGIC), found=repr(magic))
    position = len(_MAGIC)
    blocks: list[PackedBlock] = []
    while True:
        raw, position = _read_field(data, position, MAX_BLOCK_SIZE_BYTES)
        if not raw:
            break
        if len(blocks) == MAX_PACK_BLOCKS:
            raise MalformedError("pack", where=position, expected=f"at most {MAX_PACK_BLOCKS} blocks", found="more")
        signature, position = _read_field(data, position, MAX_SIGNATURE_BYTES)
        step_record, position = _read_field(data, position, MAX_STEP_RECORD_BYTES)
        blocks.append(PackedBlock(raw, signature or None, step_record or None))
    count, position = _read_number(data, position)
    if count != len(blocks) or position != len(data):
        raise MalformedError("pack", where=position, expected=f"an end after {count} blocks", found=len(blocks))
    return tuple(blocks)


def _decompress(body: bytes) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES)
    source = io.BytesIO(body)
    chunks: list[bytes] = []
    size_bytes = 0
    try:
        # A few bytes can name gigabytes: the stream is read in pieces, and no further than a pack may go.
        with decompressor.stream_reader(source, read_across_frames=False) as reader:
            while chunk := reader.read(min(1024 * 1024, MAX_PACK_RAW_BYTES + 1 - size_bytes)):
                chunks.append(chunk)
                size_bytes += len(chunk)
                if size_bytes > MAX_PACK_RAW_BYTES:
                    raise MalformedError("pack", expected=f"at most {MAX_PACK_RAW_BYTES} bytes unpacked", found="more")
    except zstandard.ZstdError as error:
        raise MalformedError("pack", expected="a zstd frame", found=str(error)) from error
    return b"".join(chunks)


def _read_number(data: memoryview, position: int) -> tuple[int, int]:
    end = position + _LENGTH.size
    if end > len(data):
        raise MalformedError("pack", where=position, expected="a length", found="the end")
    return _LENGTH.unpack_from(data, position)[0], end


def _read_field(data: memoryview, position: int, max_bytes: int) -> tuple[bytes, int]:
    length, start = _read_number(data, position)
    if length > max_bytes:
        raise MalformedError("pack", where=position, expected=f"at most {max_bytes} bytes", found=length)
    if start + length > len(data):
        raise MalformedError("pack", where=start, expected=f"{length} bytes", found=len(data) - start)
    return bytes(data[start : start + length]), start + length
