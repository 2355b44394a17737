"""Hashes that name their algorithm.

A multihash is ``varint(code) varint(length) digest``; its text is multibase, by default base16 (``f1620...``).

Source: ODF "Hashes"; multihash specification; multiformats unsigned-varint: at most 9 bytes, shortest form only.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from odf_protocol.errors import MalformedError
from odf_protocol.multibase import decode_multibase, encode_base16

MAX_VARINT_BYTES = 9  # multiformats unsigned-varint: "practical maximum of 9 bytes"


def encode_varint(value: int) -> bytes:
    """Encode a number below 2**63 in the shortest form."""
    if not 0 <= value < 1 << 63:
        raise ValueError(f"varint out of range: {value}")
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: bytes, position: int = 0) -> tuple[int, int]:
    """Decode one number.

    Returns:
        The number and the position of the byte after it.

    Raises:
        MalformedError: Cut short, longer than 9 bytes, or not in the shortest form.
    """
    value = 0
    for count, byte in enumerate(data[position : position + MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            if byte == 0 and count:
                raise MalformedError("varint", where=position, expected="the shortest form", found="a trailing zero")
            return value, position + count + 1
    expected = f"an end within {MAX_VARINT_BYTES} bytes"
    raise MalformedError("varint", where=position, expected=expected, found=f"{len(data) - position} bytes")


SHA2_256 = 0x12
SHA3_256 = 0x16  # blocks, slices and checkpoints
ARROW0_SHA3_256 = 0x300016  # logical hashes; a code of ODF's own

# The reference implementation keeps digests in 32 bytes, so nothing longer exists in the network.
MAX_DIGEST_BYTES = 32

_DIGEST_BYTES = {SHA2_256: 32, SHA3_256: 32, ARROW0_SHA3_256: 32}


@lru_cache(maxsize=64)
def _prefix(code: int, digest_bytes: int) -> bytes:
    return encode_varint(code) + encode_varint(digest_bytes)


@dataclass(frozen=True, slots=True, order=True)
class Multihash:
    """A digest and the code of the algorithm that made it.

    >>> Multihash.of_sha3_256(b"multihash").short
    '7137c635'
    """

    code: int
    digest: bytes

    def __post_init__(self) -> None:
        length = len(self.digest)
        if not 1 <= length <= MAX_DIGEST_BYTES:
            raise MalformedError("multihash", expected=f"a digest of 1 to {MAX_DIGEST_BYTES} bytes", found=length)
        if length != _DIGEST_BYTES.get(self.code, length):
            raise MalformedError("multihash", expected=f"{_DIGEST_BYTES[self.code]} bytes of digest", found=length)

    @classmethod
    def of_sha3_256(cls, data: bytes | bytearray | memoryview) -> Self:
        """Hash bytes."""
        return cls(SHA3_256, hashlib.sha3_256(data).digest())

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read the binary form.

        Raises:
            MalformedError: Cut short, too long, digest of the wrong length, or a prefix not in its shortest form.
        """
        code, position = decode_varint(data)
        length, position = decode_varint(data, position)
        if len(data) - position != length:
            raise MalformedError("multihash", where=position, expected=f"{length} bytes", found=len(data) - position)
        return cls(code, bytes(data[position:]))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form in any multibase we know.

        Raises:
            MalformedError: Not multibase, or not a multihash inside.
        """
        return cls.decode(decode_multibase(text))

    def to_bytes(self) -> bytes:
        """Return the binary form."""
        return _prefix(self.code, len(self.digest)) + self.digest

    @property
    def short(self) -> str:
        """The last 8 characters of the base16 text, for people."""
        return self.digest.hex()[-8:]

    def __str__(self) -> str:
        return encode_base16(self.to_bytes())
