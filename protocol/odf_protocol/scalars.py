"""Numbers as FlatBuffers writes them.

Source: FlatBuffers "Internals": scalars are little-endian and aligned to their size.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scalar:
    """A FlatBuffers number: its ``struct`` format, little-endian."""

    name: str
    format: str
    size_bytes: int
    minimum: int
    maximum: int


BOOL = Scalar("bool", "<B", 1, 0, 1)
INT16 = Scalar("int16", "<h", 2, -(1 << 15), (1 << 15) - 1)
INT32 = Scalar("int32", "<i", 4, -(1 << 31), (1 << 31) - 1)
INT64 = Scalar("int64", "<q", 8, -(1 << 63), (1 << 63) - 1)
UINT32 = Scalar("uint32", "<I", 4, 0, (1 << 32) - 1)
UINT64 = Scalar("uint64", "<Q", 8, 0, (1 << 64) - 1)
