"""Parts of objects: byte ranges as HTTP writes them, and the leaves that tell which range is wrong (EX-40).

Leaves are SHA3-256 of a zero byte and 1 MiB of the object (the last one shorter; none for an empty object). The list of
leaves is a peer's word: an object's block names only the hash of the whole. So a peer is held to the list that it gave,
and the list to the block when everything is there.

Source: RFC 9110 sections 8.8.3 (ETag), 13.1 (conditions), 14 (ranges).
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from odf_protocol.errors import MalformedError

_RANGE: Final = re.compile(r"bytes=(\d{0,19})-(\d{0,19})", re.ASCII | re.IGNORECASE)
_CONTENT_RANGE: Final = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)", re.ASCII | re.IGNORECASE)
_ETAG: Final = re.compile(r'(?:W/)?"([^"]*)"')


class UnsatisfiableRangeError(MalformedError):
    """The range begins after the end of the object."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``start`` up to and without ``end`` of ``size_bytes`` (None: the sender does not say)."""

    start: int
    end: int
    size_bytes: int | None

    @property
    def content_range(self) -> str:
        """The value of ``Content-Range``."""
        return f"bytes {self.start}-{self.end - 1}/{'*' if self.size_bytes is None else self.size_bytes}"


def find_range(header: str | None, size_bytes: int) -> ByteRange | None:
    """Read a ``Range`` header for an object of ``size_bytes``.

    Returns:
        None where the whole object is to be sent: no header, several ranges, another unit, or nonsense.

    Raises:
        UnsatisfiableRangeError: Nothing of the object lies in the range.
    """
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None:
        return None
    first, last = found.groups()
    if not first and not last:
        return None
    if not first:
        start, end = max(0, size_bytes - int(last)), size_bytes
    else:
        start = int(first)
        end = min(int(last) + 1, size_bytes) if last else size_bytes
        if last and int(last) < start:
            return None
    if start >= end:
        raise UnsatisfiableRangeError("Range", expected=f"a part of {size_bytes} bytes", found=header)
    return ByteRange(start, end, size_bytes)


def find_content_range(header: str | None) -> ByteRange | None:
    """Read a ``Content-Range`` header; None where it is absent or nonsense."""
    found = _CONTENT_RANGE.fullmatch(header.strip()) if header else None
    if found is None:
        return None
    first, last, size = found.groups()
    return ByteRange(int(first), int(last) + 1, None if size == "*" else int(size))


def matches_etag(header: str | None, etag: str) -> bool:
    """Say whether ``If-None-Match`` or ``If-Range`` names ``etag`` (without quotes), or any."""
    if header is None:
        return False
    return header.strip() == "*" or etag in _ETAG.findall(header)


LEAF_BYTES: Final = 1024 * 1024
HASH_BYTES: Final = 32
MAX_LEAVES: Final = 1_000_000
"""An object of a terabyte; its list has 32 MB."""
TREE_MEDIA_TYPE: Final = "application/vnd.odf-node.hash-tree"

_LEAF: Final = b"\0"


@dataclass(frozen=True, slots=True)
class HashTree:
    """The leaves of one object, in order; ``raw`` is their hashes one after another."""

    raw: bytes
    size_bytes: int

    def __post_init__(self) -> None:
        expected = count_leaves(self.size_bytes) * HASH_BYTES
        if len(self.raw) != expected:
            raise MalformedError("hash tree", expected=f"{expected} bytes", found=len(self.raw))

    def __len__(self) -> int:
        return len(self.raw) // HASH_BYTES

    def range_of(self, leaf: int) -> tuple[int, int]:
        """Return where a leaf's bytes begin and end."""
        return leaf * LEAF_BYTES, min((leaf + 1) * LEAF_BYTES, self.size_bytes)

    def matches(self, leaf: int, data: bytes | memoryview) -> bool:
        """Say whether bytes are those of the leaf."""
        start, end = self.range_of(leaf)
        return end - start == len(data) and leaf_hash(data) == self.raw[leaf * HASH_BYTES : (leaf + 1) * HASH_BYTES]


def count_leaves(size_bytes: int) -> int:
    """Return how many leaves an object has."""
    return -(-size_bytes // LEAF_BYTES)


def leaf_hash(data: bytes | memoryview) -> bytes:
    """Hash one leaf."""
    hasher = hashlib.sha3_256(_LEAF)
    hasher.update(data)
    return hasher.digest()


def hash_leaves(leaves: Iterable[bytes], size_bytes: int) -> HashTree:
    """Hash a whole object.

    Args:
        leaves: Its bytes in pieces of ``LEAF_BYTES``, the last one shorter.
        size_bytes: Of the whole.

    Raises:
        MalformedError: The object has another size.
    """
    return HashTree(b"".join(map(leaf_hash, leaves)), size_bytes)
