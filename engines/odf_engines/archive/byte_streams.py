"""Bytes of an archive as they are unpacked: counted, bounded, hashed.

Source: clause ADDED-12 in ``spec/extensions/added-engines.md``.
"""

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import BinaryIO, Final, cast

import zstandard

from odf_engines.archive.tar_entries import ByteStream
from odf_protocol.errors import MalformedError

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_MAGIC_BYTES: Final = 4
_MOST_WINDOW_BYTES: Final = 128 * 1024 * 1024  # as zstd's own program unpacks without being asked for more
_READ_BYTES: Final = 1024 * 1024


class Section:
    """A part of a file, as a stream."""

    def __init__(self, file: BinaryIO, position: int, size_bytes: int) -> None:
        self._file = file
        self._left = size_bytes
        file.seek(position)

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        found = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(found)
        return found


class BoundedStream:
    """A stream of which no more than a bound can be read, hashed on the way.

    Args:
        stream: Unpacked or not.
        most_bytes: The bound.
        what: For people.
    """

    def __init__(self, stream: ByteStream, most_bytes: int, what: str) -> None:
        self._stream = stream
        self._left = most_bytes
        self._most_bytes = most_bytes
        self._what = what
        self._digest = hashlib.sha256()  # the algorithm of images: OCI image-spec "Digests"

    def read(self, size: int, /) -> bytes:
        """Return so many bytes, fewer only at the end.

        Raises:
            MalformedError: There are more than the bound, or they cannot be unpacked.
        """
        parts, wanted = [], size
        try:
            while wanted > 0 and (part := self._stream.read(min(wanted, _READ_BYTES))):
                parts.append(part)
                wanted -= len(part)
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
            raise MalformedError(self._what, expected="bytes that can be unpacked", found=error) from error
        found = b"".join(parts)
        self._left -= len(found)
        if self._left < 0:
            raise MalformedError(self._what, expected=f"at most {self._most_bytes} bytes unpacked", found="more")
        self._digest.update(found)
        return found

    def finish(self) -> str:
        """Read to the end and return the SHA-256 of everything, in hexadecimal digits."""
        while self.read(_READ_BYTES):
            pass
        return self._digest.hexdigest()


def magic_of(path: Path) -> bytes:
    """Return the first bytes of a file, by which formats are told apart."""
    with path.open("rb") as file:
        return file.read(_MAGIC_BYTES)


def unpacked(stream: ByteStream, magic: bytes) -> ByteStream:
    """Return what a stream packs by gzip or zstd, or the stream itself.

    Args:
        stream: At its beginning.
        magic: Its first bytes.
    """
    read_only = cast("BinaryIO", stream)  # all that is asked of it
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=read_only, mode="rb")
    if magic.startswith(_ZSTD):
        packed = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES)
        return packed.stream_reader(read_only, read_across_frames=True)
    return stream
