"""A SHA3-256 in the manner of ``hashlib`` whose blocks are taken in together with those of other threads."""

import hashlib
from typing import Final, Self

import numpy as np

from odf_node.sha3.compiled import Message, Programs
from odf_node.sha3.keccak import RATE_BYTES
from odf_node.sha3.lanes import Lanes

_DIGEST_BYTES: Final = 32  # Source: FIPS 202, section 6.1

_BEGIN_OF_PADDING: Final = 0x06
"""The two bits that tell SHA3 from other uses of Keccak, and the first of the padding. Source: FIPS 202, table 6."""
_END_OF_PADDING: Final = 0x80
"""The last bit of the padding; in one byte with its begin where only one is left. Source: FIPS 202, table 6."""

_HELD_BYTES: Final = 15 * RATE_BYTES
"""Less than this is held back: calling the program takes as long as some blocks, and joining bytes nothing (guess)."""

_CHECKED_BYTES: Final = 3 * RATE_BYTES + 7  # guess: into an empty state and into others; not whole blocks


class LaneHash:
    """See ``hashing.Hash``."""

    def __init__(self, lanes: Lanes, message: Message | None = None, rest: bytes = b"") -> None:
        """Start one, or go on from blocks of a message that were taken in and the bytes that came after them."""
        self._lanes = lanes
        self._message = message or Message()
        self._rest = rest

    def update(self, data: bytes | bytearray | memoryview, /) -> None:
        """See ``hashing.Hash``. After another exception than BufferError and TypeError this hash is of no use."""
        view = memoryview(data)
        if not view.c_contiguous:
            raise BufferError("only contiguous memory is hashed")
        if view.format != "B" or view.ndim != 1:
            view = _bytes_of(view)
        if len(self._rest) + len(view) < _HELD_BYTES:
            self._rest += view
            return
        if self._rest:
            missing = -len(self._rest) % RATE_BYTES
            begun = self._rest + view[:missing]
            self._lanes.absorb(self._message, address_of(begun), len(begun) // RATE_BYTES)
            view = view[missing:]
        blocks = len(view) // RATE_BYTES
        if blocks:
            self._lanes.absorb(self._message, address_of(view), blocks)
        self._rest = bytes(view[blocks * RATE_BYTES :])

    def digest(self) -> bytes:
        """See ``hashing.Hash``."""
        message, end = self._message.copy(), self._rest + padding_after(len(self._rest))
        self._lanes.absorb(message, address_of(end), len(end) // RATE_BYTES)
        return message.state_bytes(_DIGEST_BYTES)

    def copy(self) -> Self:
        """See ``hashing.Hash``."""
        return type(self)(self._lanes, self._message.copy(), self._rest)


def find_lanes() -> Lanes | None:
    """Make the programs for this machine; None where there are none, or where what they compute is wrong.

    Raises:
        RuntimeError: As for ``Programs.find``.
    """
    programs = Programs.find()
    return Lanes(programs) if programs is not None and are_right(programs) else None


def are_right(programs: Programs) -> bool:
    """Compare with ``hashlib``: fixed messages, one alone, and as many together as there are lanes, or one less."""
    for together in (1, programs.lanes - 1, programs.lanes):
        contents = [bytes(place * (lane + 3) % 251 for place in range(_CHECKED_BYTES)) for lane in range(together)]
        padded = [content + padding_after(len(content)) for content in contents]
        messages = [Message() for _ in contents]
        blocks = len(padded[0]) // RATE_BYTES
        for message, data in zip(messages, padded, strict=True):
            message.point_to(address_of(data), blocks)
        programs.absorb(messages, blocks)
        computed = [message.state_bytes(_DIGEST_BYTES) for message in messages]
        if computed != [hashlib.sha3_256(content).digest() for content in contents]:
            return False
    return True


def padding_after(size_bytes: int) -> bytes:
    """Return what makes whole blocks of a message of this size. Source: FIPS 202, table 6."""
    padding = bytearray(RATE_BYTES - size_bytes % RATE_BYTES)
    padding[0] |= _BEGIN_OF_PADDING
    padding[-1] |= _END_OF_PADDING
    return bytes(padding)


def address_of(data: bytes | memoryview) -> int:
    """Return where the bytes are, of which there is at least one; they stay there as long as ``data`` is held."""
    address: int = np.frombuffer(data, np.uint8).ctypes.data
    return address


def _bytes_of(view: memoryview) -> memoryview:
    try:
        return view.cast("B")
    except TypeError:  # of types that it does not know, such as those of numpy with a fixed byte order
        return memoryview(view.tobytes())
