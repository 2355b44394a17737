"""The hash tree over an object's bytes: which range is wrong, before the whole has arrived (EX-40).

Leaves are SHA3-256 of a zero byte and 1 MiB of the object (the last one shorter; none for an empty object). The list of
leaves is a peer's word: an object's block names only the hash of the whole. So a peer is held to the list that it gave,
and the list to the block when everything is there.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from odf_protocol.errors import MalformedError

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
