"""Blocks on their way: a gzip stream of a tar of one plain file for each block, oldest first (SMART-4).

The file's name is the text of the block's hash. Written byte for byte as others write the tar; read with bounds, one
block after the other, so that memory holds one block and not the batch.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES
from odf_smart_protocol.limits import (
    MAX_BATCH_BLOCKS,
    MAX_BATCH_RAW_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_READ_BATCH_BLOCKS,
    MAX_READ_BATCH_RAW_BYTES,
)

_RECORD: Final = 512
_HEADER: Final = struct.Struct("100s 24x 12s 12s 8s c 100s 8s 247x")
"""name; size, time, checksum in octal; kind, link, magic. Source: GNU tar, "Basic Tar Format"."""
_GNU_MAGIC: Final = b"ustar  \0"
_PLAIN: Final = frozenset({b"\0", b"0"})
_GZIP_HEADER: Final = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255))
"""No name, no time, no operating system. Source: RFC 1952 section 2.3."""
_IN_COMPRESSOR_BYTES: Final = 128 * 1024
"""More than zlib ever holds back."""
_READ_BYTES: Final = 64 * 1024


def encode_tar_entry(block_hash: Multihash, raw: bytes) -> bytes:
    """Give the header, the block and its padding."""
    blank = _HEADER.pack(
        str(block_hash).encode(), b"%011o\0" % len(raw), b"%011o\0" % 0, b" " * 8, b"\0", b"", _GNU_MAGIC
    )
    header = blank[:148] + b"%07o\0" % sum(blank) + blank[156:]
    return header + raw + bytes(-len(raw) % _RECORD)


def encode_batch(blocks: Iterable[tuple[Multihash, bytes]]) -> tuple[bytes, int]:
    """Pack blocks from the front of ``blocks`` until one message is full.

    Returns:
        The payload, and how many blocks are in it: at least one, if there is any.
    """
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    parts, size_bytes, raw_bytes, count, crc = [_GZIP_HEADER], 0, 0, 0, 0

    def add(chunk: bytes) -> None:
        nonlocal size_bytes, raw_bytes, crc
        squeezed = squeeze.compress(chunk)
        parts.append(squeezed)
        size_bytes += len(squeezed)
        raw_bytes += len(chunk)
        crc = zlib.crc32(chunk, crc)

    for block_hash, raw in blocks:
        # A block that does not compress must still fit behind what is there.
        if count and size_bytes + len(raw) + _IN_COMPRESSOR_BYTES > MAX_PAYLOAD_BYTES:
            break
        add(encode_tar_entry(block_hash, raw))
        count += 1
        if count == MAX_BATCH_BLOCKS or raw_bytes >= MAX_BATCH_RAW_BYTES:
            break
    add(bytes(2 * _RECORD))
    parts.append(squeeze.flush())
    parts.append(struct.pack("<II", crc, raw_bytes & 0xFFFFFFFF))
    return b"".join(parts), count


def decode_batch(payload: bytes, *, num_blocks: int) -> Iterator[tuple[Multihash, bytes]]:
    """Yield the blocks with their hashes; nothing else about them was checked.

    Raises:
        MalformedError: No such archive, another number of blocks than was said, or too much of anything.
    """
    if num_blocks > MAX_READ_BATCH_BLOCKS:
        raise MalformedError("batch of blocks", expected=f"at most {MAX_READ_BATCH_BLOCKS}", found=num_blocks)
    source = _Inflated(payload)
    for number in range(num_blocks):
        header = source.read(_RECORD)
        if not any(header):
            raise MalformedError("batch of blocks", expected=f"{num_blocks} blocks", found=number)
        block_hash, size_bytes = _read_header(header)
        raw = source.read(size_bytes)
        found = Multihash.of_sha3_256(raw)
        if found != block_hash:
            raise MalformedError("batch of blocks", where=f"block {number}", expected=block_hash, found=found)
        yield block_hash, raw
        source.read(-size_bytes % _RECORD)
    if any(source.read(_RECORD)):
        raise MalformedError("batch of blocks", expected=f"{num_blocks} blocks", found="more")


def _read_header(header: bytes) -> tuple[Multihash, int]:
    name, size, _time, checksum, kind, _link, _magic = _HEADER.unpack(header)
    if _read_octal(checksum) != sum(header[:148]) + 8 * 32 + sum(header[156:]):
        raise MalformedError("batch of blocks", expected="the checksum of a tar header", found=repr(checksum))
    if kind not in _PLAIN:
        raise MalformedError("batch of blocks", expected="plain files", found=f"kind {kind!r}")
    size_bytes = _read_octal(size)
    if not 0 < size_bytes <= MAX_BLOCK_SIZE_BYTES:
        raise MalformedError("batch of blocks", expected=f"1 to {MAX_BLOCK_SIZE_BYTES} bytes", found=size_bytes)
    try:
        return Multihash.parse(name.rstrip(b"\0").decode("ascii")), size_bytes
    except UnicodeDecodeError as error:
        raise MalformedError("name of a block", expected="a hash", found=repr(name)) from error


def _read_octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    try:
        return int(digits, 8)
    except ValueError as error:
        raise MalformedError("batch of blocks", expected="octal digits", found=repr(field)) from error


class _Inflated:
    """A gzip stream, inflated no further than is asked for."""

    def __init__(self, payload: bytes) -> None:
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._payload = payload
        self._position = 0
        self._ready = bytearray()
        self._left_bytes = MAX_READ_BATCH_RAW_BYTES

    def read(self, size_bytes: int) -> bytes:
        """Give exactly this many bytes."""
        while len(self._ready) < size_bytes:
            self._inflate_more()
        chunk = bytes(self._ready[:size_bytes])
        del self._ready[:size_bytes]
        return chunk

    def _inflate_more(self) -> None:
        source = self._inflate.unconsumed_tail
        if not source:
            source = self._payload[self._position : self._position + _READ_BYTES]
            self._position += len(source)
        if not source or self._inflate.eof:
            raise MalformedError("batch of blocks", where=self._position, expected="more", found="its end")
        try:
            chunk = self._inflate.decompress(source, _READ_BYTES)
        except zlib.error as error:
            raise MalformedError("batch of blocks", expected="a gzip stream", found=str(error)) from error
        self._left_bytes -= len(chunk)
        if self._left_bytes < 0:
            raise MalformedError("batch of blocks", expected=f"at most {MAX_READ_BATCH_RAW_BYTES} bytes", found="more")
        self._ready += chunk
