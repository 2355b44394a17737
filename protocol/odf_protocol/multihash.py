"""Hashes that name their algorithm.

A multihash is ``varint(code) varint(length) digest``; its text is multibase, by default base16 (``f1620...``).

Source: ODF "Hashes"; multihash specification.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from odf_protocol.errors import MalformedError
from odf_protocol.multibase import decode_multibase, encode_base16
from odf_protocol.varint import decode_varint, encode_varint

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
