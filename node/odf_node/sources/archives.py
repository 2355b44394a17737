"""Unpack one file: gzip, or an entry of a zip. Archives are untrusted: what they unpack to is bounded as it appears."""

import asyncio
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final

from odf_node.sources.contract import PrepareKind, SourceSettings
from odf_node.sources.limits import BoundedFile, SourceLimits
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import CompressionFormat, PrepStep, PrepStepDecompress
from odf_protocol.manifest.errors import At

_CHUNK_BYTES: Final = 1024 * 1024
GZIP_MEMBER: Final = 31
"""For zlib: a window of 2**15, with a gzip header."""
_ENCRYPTED: Final = 0x1  # general purpose bit flag 0 (APPNOTE.TXT 4.4.4)
_MAX_DIRECTORY_BYTES: Final = 4 * 1024**2  # guess: some 40,000 entries; it is read as a whole

# Python's reader unpacks other methods a mebibyte of the archive at a time, and of bzip2 that can be gigabytes.
_BOUNDED_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class ArchiveStep(PrepareKind):
    """Prepare steps that unpack a file."""

    steps = (PrepStepDecompress,)

    def check(self, step: PrepStep, at: At, settings: SourceSettings) -> None:
        pass

    async def prepare(
        self, step: PrepStep, path: Path, target: Path, *, name: str, settings: SourceSettings
    ) -> tuple[str, ...]:
        assert isinstance(step, PrepStepDecompress)
        return await asyncio.to_thread(decompress, step, path=path, target=target, name=name, limits=settings.limits)


def decompress(
    step: PrepStepDecompress, *, path: Path, target: Path, name: str, limits: SourceLimits
) -> tuple[str, ...]:
    """Unpack ``path`` into the new file ``target``; return the further files of an archive that the step does not name.

    See ``SourceReader.prepare``.
    """
    packed_bytes = path.stat().st_size
    with path.open("rb") as packed, BoundedFile(target, name, limits, packed_bytes=packed_bytes) as unpacked:
        match step.format:
            case CompressionFormat.GZIP:
                _gunzip(packed, unpacked, name)
                return ()
            case CompressionFormat.ZIP:
                return _unzip(packed, unpacked, name, step.sub_path)


def _gunzip(packed: BinaryIO, unpacked: BoundedFile, name: str) -> None:
    member = zlib.decompressobj(GZIP_MEMBER)
    pending = packed.read(_CHUNK_BYTES)
    if not pending:
        raise MalformedError("gzip file", where=name, expected="a gzip header", found="an empty file")
    try:
        while pending:
            unpacked.write(member.decompress(pending, _CHUNK_BYTES))
            pending = member.unconsumed_tail
            if not member.eof:
                pending = pending or packed.read(_CHUNK_BYTES)
                continue
            # Members follow one another, and tools pad with zeros (RFC 1952 section 2.2; gzip(1)).
            pending = (member.unused_data or packed.read(_CHUNK_BYTES)).lstrip(b"\0")
            while not pending and (more := packed.read(_CHUNK_BYTES)):
                pending = more.lstrip(b"\0")
            if pending:
                member = zlib.decompressobj(GZIP_MEMBER)
        # What the decompressor holds back is written out in bounded pieces, too.
        while not member.eof and (rest := member.decompress(b"", _CHUNK_BYTES)):
            unpacked.write(rest)
    except zlib.error as error:
        raise MalformedError("gzip file", where=name, expected="gzip data", found=str(error)) from error
    if not member.eof:
        raise MalformedError("gzip file", where=name, expected="the end of its data", found="the end of the file")


def _unzip(packed: BinaryIO, unpacked: BoundedFile, name: str, sub_path: str | None) -> tuple[str, ...]:
    with open_entry(packed, name, sub_path) as (archive, entry):
        while chunk := entry.read(_CHUNK_BYTES):
            unpacked.write(chunk)
        if sub_path is not None:
            return ()
        return tuple(each.filename for each in list_entries(archive) if each.filename != entry.name)


@contextmanager
def open_entry(packed: BinaryIO, name: str, sub_path: str | None) -> Iterator[tuple[zipfile.ZipFile, IO[bytes]]]:
    """Open one file of a zip archive: the one called ``sub_path``, or the first.

    Raises:
        MalformedError: The archive is damaged, or has no such entry; also where the entry is read.
        UnsupportedError: It has a password, or is of an unknown method.
    """
    try:
        archive_file: BinaryIO = _BoundedReads(packed)  # type: ignore[assignment]  # all that a zip reader uses
        with zipfile.ZipFile(archive_file) as archive, archive.open(_choose(archive, name, sub_path)) as entry:
            yield archive, entry
    except NotImplementedError as error:
        raise UnsupportedError("zip compression method", found=f"{name}: {error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise MalformedError("zip file", where=name, expected="a whole zip archive", found=str(error)) from error


def list_entries(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """List the files of an archive, without folders."""
    return [entry for entry in archive.infolist() if not entry.filename.endswith("/")]


def _choose(archive: zipfile.ZipFile, name: str, sub_path: str | None) -> zipfile.ZipInfo:
    entries = list_entries(archive)
    chosen = [entry for entry in entries if sub_path in {None, entry.filename}]
    if not chosen:
        found = ", ".join(entry.filename[:80] for entry in entries[:5]) or "no file"
        raise MalformedError("zip file", where=name, expected=f"an entry {sub_path or ''}".strip(), found=found)
    if sum(entry.filename == chosen[0].filename for entry in entries) > 1:
        # Readers differ about which of them counts.
        found = f"several entries {chosen[0].filename[:80]}"
        raise MalformedError("zip file", where=name, expected="each entry once", found=found)
    if chosen[0].flag_bits & _ENCRYPTED:
        raise UnsupportedError("zip archive with a password", found=f"{name}: {chosen[0].filename[:80]}")
    if chosen[0].compress_type not in _BOUNDED_METHODS:
        raise UnsupportedError(
            "zip compression method",
            found=f"{name}: method {chosen[0].compress_type} of {chosen[0].filename[:80]}",
            supported="stored and deflated",
        )
    return chosen[0]


class _BoundedReads:
    """A file of which no reader takes more at once than a directory of entries may have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size_bytes: int = -1) -> bytes:
        """Read, at most a directory's bound at a time."""
        data = self._file.read(
            _MAX_DIRECTORY_BYTES + 1 if size_bytes < 0 else min(size_bytes, _MAX_DIRECTORY_BYTES + 1)
        )
        if len(data) > _MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"a directory of more than {_MAX_DIRECTORY_BYTES} bytes")
        return data
