"""A tar as a stream of entries, from bytes that nobody has checked: unpacked, counted, bounded, hashed.

The standard library reads single headers; what it does not do is to bound what a header asks it to keep in memory, so
headers that say something of the next one are read here, and only what is used of them.

Source: clause ADDED-12 in ``spec/plug-ins/foreign.md``; POSIX.1-2001 pax, GNU tar "Basic Tar Format".
"""

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

import zstandard

from odf_protocol.errors import MalformedError, UnsupportedError

_BLOCK: Final = tarfile.BLOCKSIZE
_READ_BYTES: Final = 1024 * 1024
_MAX_HEADER_BYTES: Final = 1024 * 1024  # guess: extended attributes of a file may have 64 KiB each
MAX_PATH_BYTES: Final = 4096  # PATH_MAX of Linux
_PLAIN: Final = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE})
_DEVICES: Final = {tarfile.CHRTYPE: "a device", tarfile.BLKTYPE: "a device", tarfile.FIFOTYPE: "a pipe"}
_RUN_BITS: Final = 0o111
_PRIVILEGE_BITS: Final = 0o6000  # setuid, setgid


class ByteStream(Protocol):
    """What bytes are read from, in order; fewer than asked for come only at the end."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        ...


class EntryKind(Enum):
    """What an entry becomes."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    HARD_LINK = auto()


@dataclass(frozen=True, slots=True)
class TarEntry:
    """One entry.

    Attributes:
        path: As the archive has it: untrusted.
        kind: What it becomes.
        size_bytes: Of a file.
        target: Of a link, untrusted; empty otherwise.
        can_run: Whether anybody may run it.
        has_privileges: Whether it would run as another user.
        position: Where its bytes begin in the stream.
    """

    path: str
    kind: EntryKind
    size_bytes: int
    target: str
    can_run: bool
    has_privileges: bool
    position: int

    @property
    def named_bytes(self) -> int:
        """How much of memory its names take, about."""
        return len(self.path.encode()) + len(self.target.encode())


class _Body:
    """The bytes of one file; what nobody reads is passed over."""

    def __init__(self, stream: ByteStream, size_bytes: int) -> None:
        self._stream = stream
        self._left = size_bytes
        self._padding = -size_bytes % _BLOCK

    def read(self, size: int, /) -> bytes:
        wanted = min(size, self._left)
        found = self._stream.read(wanted) if wanted else b""
        if len(found) < wanted:
            raise MalformedError("tar", expected=f"{self._left} more bytes of a file", found=f"{len(found)}")
        self._left -= len(found)
        return found

    def finish(self) -> None:
        while self.read(_READ_BYTES):
            pass
        self._stream.read(self._padding)


def iter_entries(stream: ByteStream) -> Iterator[tuple[TarEntry, ByteStream]]:
    """Yield every entry, with its bytes, which can be read until the next one is asked for.

    Raises:
        MalformedError: It is no tar, or it is cut off.
        UnsupportedError: It has what no root folder needs: devices, pipes, files with holes.
    """
    position = 0
    stated: dict[str, str] = {}  # of the next entry
    while header := stream.read(_BLOCK):
        if not any(header):
            return
        info = _decode(header, position)
        position += _BLOCK
        body = _Body(stream, info.size)
        padded = info.size + -info.size % _BLOCK
        if info.type in {tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE}:
            found = _decode_records(_read_header(body, info))
            if info.type != tarfile.XGLTYPE:
                stated |= found
            elif found:
                raise UnsupportedError("tar", found="paths or sizes for all entries at once")
        elif info.type == tarfile.GNUTYPE_LONGNAME:
            stated["path"] = _decode_text(_read_header(body, info).rstrip(b"\0"))
        elif info.type == tarfile.GNUTYPE_LONGLINK:
            stated["linkpath"] = _decode_text(_read_header(body, info).rstrip(b"\0"))
        else:
            entry = _entry_of(info, stated, position)
            padded = entry.size_bytes + -entry.size_bytes % _BLOCK
            body, stated = _Body(stream, entry.size_bytes), {}
            yield entry, body
        body.finish()
        position += padded
    if position == 0:
        raise MalformedError("tar", expected="an entry", found="nothing")


def _decode(header: bytes, position: int) -> tarfile.TarInfo:
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (tarfile.TarError, ValueError) as error:
        raise MalformedError("tar", where=position, expected="a header", found=error) from error
    if info.size < 0:
        raise MalformedError("tar", where=position, expected="a size", found=info.size)
    return info


def _entry_of(info: tarfile.TarInfo, stated: dict[str, str], position: int) -> TarEntry:
    path = _check_length(stated.get("path", info.name), position)
    if info.type in _DEVICES:
        raise UnsupportedError("entry of an archive", found=f"{path}, {_DEVICES[info.type]}; leave it out")
    kinds = {tarfile.DIRTYPE: EntryKind.FOLDER, tarfile.SYMTYPE: EntryKind.LINK, tarfile.LNKTYPE: EntryKind.HARD_LINK}
    kind = EntryKind.FILE if info.type in _PLAIN else kinds.get(info.type)
    if kind is None:
        raise UnsupportedError("entry of an archive", found=f"{path}, of type {info.type!r}")
    target = stated.get("linkpath", info.linkname)
    return TarEntry(
        path=path,
        kind=kind,
        size_bytes=_size_of(info, stated, position) if kind is EntryKind.FILE else 0,
        target=_check_length(target, position) if kind in {EntryKind.LINK, EntryKind.HARD_LINK} else "",
        can_run=bool(info.mode & _RUN_BITS),
        has_privileges=kind is EntryKind.FILE and bool(info.mode & _PRIVILEGE_BITS),
        position=position,
    )


def _check_length(path: str, position: int) -> str:
    """Return a path that may be kept: entries are many, and headers long."""
    if len(path.encode()) > MAX_PATH_BYTES:
        raise MalformedError(
            "tar",
            where=position,
            expected=f"a path of at most {MAX_PATH_BYTES} bytes",
            found=f"{len(path)} characters",
        )
    return path


def _size_of(info: tarfile.TarInfo, stated: dict[str, str], position: int) -> int:
    text = stated.get("size")
    if text is None:
        return info.size
    if not text.isascii() or not text.isdigit() or len(text) > len(str(2**63)):
        raise MalformedError("tar", where=position, expected="a size", found=text)
    return int(text)


def _read_header(body: _Body, info: tarfile.TarInfo) -> bytes:
    if info.size > _MAX_HEADER_BYTES:
        raise MalformedError("tar", expected=f"headers of at most {_MAX_HEADER_BYTES} bytes", found=info.size)
    return body.read(info.size)


def _decode_records(raw: bytes) -> dict[str, str]:
    r"""Read those of the records ``<length> <name>=<value>\\n`` that say where an entry is, or how large."""
    found = {}
    start = 0
    while start < len(raw):
        digits, space, _ = raw[start : start + 20].partition(b" ")
        length = int(digits) if space and digits.isdigit() else 0
        record = raw[start : start + length]
        name, sign, value = record[len(digits) + 1 : -1].partition(b"=")
        if not sign or len(record) != length or record[-1:] != b"\n":
            raise MalformedError("tar", expected="records of an extended header", found=raw[start : start + 40])
        if name.startswith(b"GNU.sparse"):
            raise UnsupportedError("entry of an archive", found="a file with holes; pack it without --sparse")
        if name in {b"path", b"linkpath", b"size"}:
            found[name.decode()] = _decode_text(value)
        start += length
    return found


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise MalformedError("tar", expected="names in UTF-8", found=raw[:80]) from error


_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_MAGIC_BYTES: Final = 4
_MAX_WINDOW_BYTES: Final = 128 * 1024 * 1024  # as zstd's own program unpacks without being asked for more


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
        max_bytes: The bound.
        what: For people.
        used_bytes: So many of the bound were read elsewhere.
    """

    def __init__(self, stream: ByteStream, max_bytes: int, what: str, used_bytes: int = 0) -> None:
        self._stream = stream
        self._left = max_bytes - used_bytes
        self._max_bytes = max_bytes
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
            raise MalformedError(self._what, expected=f"at most {self._max_bytes} bytes unpacked", found="more")
        self._digest.update(found)
        return found

    @property
    def used_bytes(self) -> int:
        """How much of the bound was read, here and elsewhere."""
        return self._max_bytes - self._left

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
        packed = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        return packed.stream_reader(read_only, read_across_frames=True)
    return stream
