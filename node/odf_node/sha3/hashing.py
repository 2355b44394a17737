"""SHA3-256 of what arrives: by ``hashlib``, or several messages at once where a process was prepared for it.

Light to import: what is heavy is loaded by ``prepare``.

Source: FIPS 202, section 6.1.
"""

import hashlib
import os
from collections.abc import Callable
from typing import Protocol, Self


class Hash(Protocol):
    """A hash that is being computed, as those of ``hashlib`` are; for one thread at a time."""

    def update(self, data: bytes | bytearray | memoryview, /) -> None:
        """Take in more bytes: those that the buffer holds, whatever the type of its elements.

        Raises:
            BufferError: The buffer is not contiguous.
        """
        ...

    def digest(self) -> bytes:
        """Return the 32 bytes for all that was taken in so far; more may follow."""
        ...

    def copy(self) -> Self:
        """Return another hash that has taken in the same and goes on by itself."""
        ...


_start_hash: Callable[[], Hash] = hashlib.sha3_256


def sha3_256(data: bytes | bytearray | memoryview = b"") -> Hash:
    """Start a hash with some bytes: that of ``hashlib``, unless this process is prepared for several at once."""
    started = _start_hash()
    started.update(data)
    return started


def prepare() -> bool:
    """Make hashes that are started from now on, here and in processes forked from here, share a processor's vectors.

    Costs some 150 ms once, so it is for processes that many commands are forked from. Call it before there are threads.

    Returns:
        Whether it is so; if not, because of what this machine or its installation lacks, all stays with ``hashlib``.
    """
    global _start_hash
    try:
        from odf_node.sha3.lane_hash import LaneHash, find_lanes

        lanes = find_lanes()
    except (ImportError, OSError, RuntimeError):
        # llvmlite is missing, its library cannot be loaded here, or it knows this machine or language not well enough.
        return False
    if lanes is None:
        return False
    os.register_at_fork(after_in_child=lanes.forget_threads)

    def start() -> LaneHash:
        return LaneHash(lanes)

    _start_hash = start
    return True
