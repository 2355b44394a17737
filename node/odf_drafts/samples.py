"""Read the beginning of a file or an answer, and unpack it as far as it is needed.

What is read and what it unpacks to are bounded: a file of any size, or one that unpacks to any size, costs the same.

Source: clause ING-24 in ``spec/plug-ins/drafts.md``.
"""

import asyncio
import io
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from aiohttp import ClientError

from odf_engines.errors import InvalidSourceError
from odf_engines.sampling.process import FoundTable, look_at_table
from odf_node.adapters.public_resolver import OneWayResolver
from odf_node.ports.sources import SourceNotFoundError, SourceUnavailableError
from odf_node.sources.archives import GZIP_MEMBER, list_entries, open_entry
from odf_node.sources.files import inspect_file, parse_file_url
from odf_node.sources.limits import SourceLimits
from odf_node.sources.url import open_response, show_url
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import CompressionFormat, FetchStepUrl

if TYPE_CHECKING:
    import aiohttp

_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
_TABLES: Final = {b"PAR1": "Parquet", b"Obj\x01": "Avro"}
"""First bytes of files that say their columns themselves. Source: their specifications."""

_WHOLE: Final = (_ZIP, *_TABLES)
_EXPECTED: Final = {
    "Avro": "records of Avro",
    "EsriShapefile": "a Shapefile",
    "Excel": "a workbook with a table",
    "Parquet": "a Parquet file",
    "XmlRows": "XML in which elements repeat",
}
_UNREAD_ARCHIVES: Final = (
    ("content.xml", "an OpenDocument sheet", "its sheet saved as .xlsx or CSV"),
    ("xl/workbook.bin", "a binary Excel workbook", "it saved as .xlsx"),
)
"""Ends of names of files that show what an archive is."""
_UNREAD: Final = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"(\xb5/\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
}
_SHAPES: Final = b"\0\0\x27\x0a"  # Source: ESRI Shapefile Technical Description, 1998
"""First bytes of files that nothing here unpacks. Source: their specifications."""

_ARCHIVE_BYTES: Final = 64 * 1024**2
"""Of what is brought as a whole, as a zip or a Parquet file says at its end what is in it.  # guess"""

_SHOWN_ENTRIES: Final = 5
_CHUNK_BYTES: Final = 64 * 1024
_PATIENCE_S: Final = 120.0  # guess: 64 MiB at half a MB a second
_OK: Final = 200
_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The beginning of a file, unpacked.

    Attributes:
        url: Where the file is, as a polling source names it.
        shown_as: The same for messages.
        is_local: It lies on this machine.
        content: Its first bytes, after unpacking.
        is_whole: They are all.
        compression: How it is packed.
        entry: Which file of an archive it is; None where the archive holds one.
        others: Some other files of the archive.
        table: What reads it where it is no text, ``Avro``, ``EsriShapefile``, ``Excel`` or ``Parquet``: then
            ``content`` is all of it.
        path: The file itself, where it is no text and lies on this machine unpacked; ``content`` is empty then.
    """

    url: str
    shown_as: str
    is_local: bool
    content: bytes
    is_whole: bool
    compression: CompressionFormat | None = None
    entry: str | None = None
    others: tuple[str, ...] = ()
    table: str | None = None
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class SampleReader:
    """Reads beginnings of files, within the limits of sources."""

    limits: SourceLimits = field(default_factory=SourceLimits)

    async def read_sample(self, source: str, *, limit_bytes: int) -> Sample:
        """Read a file, or a URL (``http``, ``https``, ``file``), as far as ``limit_bytes`` of what it unpacks to.

        Raises:
            SourceNotFoundError: There is nothing.
            SourceUnavailableError: It cannot be read now.
            MalformedError: It is no plain file, or damaged.
            UnsupportedError: It is packed in a way that nothing here unpacks.
        """
        scheme, has_scheme, _ = source.partition("://")
        if not has_scheme:
            return await asyncio.to_thread(_read_file, source, source, limit_bytes, self.limits)
        match scheme.lower():
            case "file":
                path = str(parse_file_url(source))
                return await asyncio.to_thread(_read_file, path, source, limit_bytes, self.limits)
            case "http" | "https":
                return await _read_url(source, limit_bytes, self.limits)
        raise UnsupportedError("URL scheme of a source", found=scheme, supported="http, https, file, or a file's name")

    async def read_table(self, kind: str, content: bytes | Path, *, shown_as: str, is_whole: bool = True) -> FoundTable:
        """Find how a file that is no plain text is to be read, and read its first records so, in a sandbox.

        Args:
            kind: As ``Sample.table``, or ``XmlRows``.
            content: The file.
            shown_as: How messages call it.
            is_whole: Nothing follows.

        Raises:
            MalformedError: It is not of this kind, has no rows in columns, or costs too much.
            SandboxUnavailableError: Nothing can be isolated on this machine.
        """
        return await asyncio.to_thread(_read_table, kind, content, shown_as, is_whole=is_whole)


def _read_file(name: str, shown_as: str, limit_bytes: int, limits: SourceLimits) -> Sample:
    path = Path(name).expanduser().absolute()
    inspect_file(path, shown_as, limits)
    try:
        with path.open("rb") as file:
            return _unpack(file, path.as_uri(), shown_as, limit_bytes, path=path)
    except OSError as error:
        raise SourceUnavailableError(shown_as, f"the file cannot be read: {error.strerror or error}") from error


async def _read_url(url: str, limit_bytes: int, limits: SourceLimits) -> Sample:
    name = show_url(url)
    try:
        async with (
            asyncio.timeout(_PATIENCE_S),
            open_response(FetchStepUrl(url=url), None, limits, OneWayResolver()) as response,
        ):
            if response.status in _GONE:
                raise SourceNotFoundError(name, f"the server answers {response.status}: nothing is there")
            if response.status != _OK:
                raise SourceUnavailableError(name, f"the server answers {response.status}", status=response.status)
            packed, is_whole = await _receive(name, response, limit_bytes)
    except TimeoutError as error:
        raise SourceUnavailableError(name, f"not enough within {_PATIENCE_S:g} s") from error
    if not is_whole and packed.startswith(_WHOLE):
        raise _too_large(name)
    return _unpack(io.BytesIO(packed), url, name, limit_bytes, is_whole=is_whole)


async def _receive(name: str, response: "aiohttp.ClientResponse", limit_bytes: int) -> tuple[bytes, bool]:
    """Return what an answer begins with, and whether that is all."""
    packed = bytearray()
    try:
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            packed += chunk
            if len(packed) > (_ARCHIVE_BYTES if packed.startswith(_WHOLE) else limit_bytes):
                return bytes(packed), False
    except ClientError as error:
        raise SourceUnavailableError(name, f"the answer broke off: {error}") from error
    return bytes(packed), True


def _unpack(
    packed: BinaryIO, url: str, name: str, limit_bytes: int, *, path: Path | None = None, is_whole: bool = True
) -> Sample:
    """Unpack what a file begins with; ``path``: it lies there; ``is_whole``: nothing follows ``packed``."""
    found = _open_packed(packed, name, limit_bytes)
    lies_there = found.table is not None and path is not None and found.compression is None
    if found.table is not None and not lies_there and not found.is_end:
        found = _open_packed(packed, name, _ARCHIVE_BYTES)
        if not found.is_end:
            raise _too_large(name)
    return Sample(
        url=url,
        shown_as=name,
        is_local=path is not None,
        content=b"" if lies_there else found.content,
        is_whole=lies_there or (found.is_end and is_whole),
        compression=found.compression,
        entry=found.entry,
        others=found.others,
        table=found.table,
        path=path if lies_there else None,
    )


def _too_large(name: str) -> UnsupportedError:
    supported = "64 MiB of it; a copy on this machine, not packed, can be larger"
    return UnsupportedError("size of a file that is read as a whole", found=name, supported=supported)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unpacked:
    """The beginning of a file, and how it was packed; see ``Sample``."""

    content: bytes
    is_end: bool
    compression: CompressionFormat | None = None
    entry: str | None = None
    others: tuple[str, ...] = ()
    table: str | None = None


def _open_packed(packed: BinaryIO, name: str, limit_bytes: int) -> _Unpacked:
    packed.seek(0)
    start = packed.read(8)
    packed.seek(0)
    for magic, what in _UNREAD.items():
        if start.startswith(magic):
            raise UnsupportedError("format of a file", found=f"{name}: {what}", supported="plain, gzip or zip")
    if start.startswith(_GZIP):
        content, is_end = _gunzip(packed, name, limit_bytes)
        return _Unpacked(content=content, is_end=is_end, compression=CompressionFormat.GZIP, table=_find_table(content))
    if start.startswith(_SHAPES):
        supported = "a zip of it with the .dbf, and the .cpg and .prj if they are there, of the same name"
        raise UnsupportedError("format of a file", found=f"{name}: a Shapefile's shapes alone", supported=supported)
    table = _find_table_in_zip(packed, name) if start.startswith(_ZIP) else None
    if start.startswith(_ZIP) and table is None:
        return _unzip(packed, name, limit_bytes)
    packed.seek(0)
    content = packed.read(limit_bytes)
    table = table or _find_table(content)
    return _Unpacked(content=content, is_end=not packed.read(1), table=table)


def _find_table(content: bytes) -> str | None:
    if content.startswith(_ZIP):
        # What was packed once more may be cut off here, and is a workbook as probably as anything else.
        return "Excel"
    return next((kind for magic, kind in _TABLES.items() if content.startswith(magic)), None)


def _gunzip(packed: BinaryIO, name: str, limit_bytes: int) -> tuple[bytes, bool]:
    """Return what the first bytes unpack to, and whether that is all."""
    content, member = bytearray(), zlib.decompressobj(GZIP_MEMBER)
    try:
        while len(content) < limit_bytes and (chunk := packed.read(_CHUNK_BYTES)):
            while chunk and len(content) < limit_bytes:
                content += member.decompress(chunk, limit_bytes - len(content))
                chunk = member.unconsumed_tail
                if member.eof:
                    # Members follow one another (RFC 1952 section 2.2).
                    chunk = member.unused_data.lstrip(b"\0")
                    if chunk:
                        member = zlib.decompressobj(GZIP_MEMBER)
    except zlib.error as error:
        raise MalformedError("gzip file", where=name, expected="gzip data", found=str(error)) from error
    return bytes(content), member.eof and not packed.read(1)


def _find_table_in_zip(packed: BinaryIO, name: str) -> str | None:
    """Say what reads an archive as a whole; None: each of its files is one of its own."""
    with open_entry(packed, name, None) as (archive, _):
        names = {each.filename for each in list_entries(archive)}
    for part, what, supported in _UNREAD_ARCHIVES:
        if any(each.endswith(part) for each in names):
            raise UnsupportedError("format to draft from", found=f"{name}: {what}", supported=supported)
    if any(each.lower().endswith(".shp") for each in names):
        return "EsriShapefile"
    return "Excel" if "[Content_Types].xml" in names else None


def _unzip(packed: BinaryIO, name: str, limit_bytes: int) -> _Unpacked:
    """Unpack the beginning of the largest file of an archive: beside data lie notes on them."""
    with open_entry(packed, name, None) as (archive, _):
        entries = list_entries(archive)
    chosen = max(entries, key=lambda each: (not _is_hidden(each.filename), each.file_size)).filename
    others = tuple(each.filename for each in entries if each.filename != chosen)
    with open_entry(packed, name, chosen) as (_, file):
        content = file.read(limit_bytes)
        is_end = not file.read(1)
    return _Unpacked(
        content=content,
        is_end=is_end,
        compression=CompressionFormat.ZIP,
        entry=chosen if others else None,
        others=others[:_SHOWN_ENTRIES],
        table=_find_table(content),
    )


def _is_hidden(entry: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in entry.split("/"))


def _read_table(kind: str, content: bytes | Path, shown_as: str, *, is_whole: bool) -> FoundTable:
    with tempfile.TemporaryDirectory(prefix="odf-sample-") as folder:
        path = content if isinstance(content, Path) else Path(folder) / "file"
        if not isinstance(content, Path):
            path.write_bytes(content)
        try:
            return look_at_table(kind, path, shown_as=shown_as, is_whole=is_whole)
        except InvalidSourceError as error:
            raise MalformedError("data", where=shown_as, expected=_EXPECTED[kind], found=error.message) from error
