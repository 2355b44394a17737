"""Hashes of a file: of its bytes, and of its rows as the reader in its sandbox finds them."""

import hashlib
from pathlib import Path

from odf_node.rows.slice_process import SliceProcess
from odf_protocol.events import DataSlice, OffsetInterval
from odf_protocol.multihash import SHA3_256, Multihash


def physical_hash_of(path: Path) -> Multihash:
    """Hash the bytes of a file."""
    with path.open("rb") as file:
        return Multihash(SHA3_256, hashlib.file_digest(file, "sha3_256").digest())


def logical_hash_of(path: Path) -> Multihash:
    """Hash the rows of one file with ``arrow0-sha3-256``; errors as ``SliceProcess.hash_rows``."""
    with SliceProcess() as reader:
        return reader.hash_rows(path)


def describe_new_slice(
    path: Path,
    interval: OffsetInterval,
    physical_hash: Multihash,
    size_bytes: int,
    *,
    logical_hash: Multihash | None = None,
) -> DataSlice:
    """Make the entry of a block for a slice of our own; ``logical_hash`` where it was computed before."""
    return DataSlice(
        logical_hash=logical_hash or logical_hash_of(path),
        physical_hash=physical_hash,
        offset_interval=interval,
        size=size_bytes,
    )
