"""Read the beginning of a file or an answer, and unpack it as far as it is needed.

What is read and what it unpacks to are bounded: a file of any size, or one that unpacks to any size, costs the same.

Source: clause ING-24 in ``spec/ingest.md``.
"""

import asyncio
import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from aiohttp import ClientError

from odf_node.adapters.public_resolver import OneWayResolver
from odf_node.adapters.sources.archives import GZIP_MEMBER, list_entries, open_entry
from odf_node.adapters.sources.files import inspect_file, parse_file_url
from odf_node.adapters.sources.limits import SourceLimits
from odf_node.adapters.sources.url import open_response, show_url
from odf_node.ports.samples import Sample
from odf_node.ports.sources import SourceNotFoundError, SourceUnavailableError
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import CompressionFormat, FetchStepUrl

if TYPE_CHECKING:
    import aiohttp

__all__ = ["read_sample"]

_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
_UNREAD: Final = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"(\xb5/\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
}
"""First bytes of files that nothing here unpacks. Source: their specifications."""

_ARCHIVE_BYTES: Final = 64 * 1024**2  # guess: a zip's directory stands at its end, so it is brought as a whole
_CHUNK_BYTES: Final = 64 * 1024
_PATIENCE_S: Final = 120.0  # guess: 64 MiB at half a MB a second
_OK: Final = 200
_GONE: Final = frozenset({404, 410})


async def read_sample(source: str, *, limit_bytes: int, limits: SourceLimits) -> Sample:
    """See ``SampleReader``."""
    scheme, has_scheme, _ = source.partition("://")
    if not has_scheme:
        return await asyncio.to_thread(_read_file, source, source, limit_bytes, limits)
    match scheme.lower():
        case "file":
            return await asyncio.to_thread(_read_file, str(parse_file_url(source)), source, limit_bytes, limits)
        case "http" | "https":
            return await _read_url(source, limit_bytes, limits)
    raise UnsupportedError("URL scheme of a source", found=scheme, supported="http, https, file, or a file's name")


def _read_file(name: str, shown_as: str, limit_bytes: int, limits: SourceLimits) -> Sample:
    path = Path(name).expanduser().absolute()
    inspect_file(path, shown_as, limits)
    try:
        with path.open("rb") as file:
            return _unpack(file, path.as_uri(), shown_as, limit_bytes, is_local=True)
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
    if not is_whole and packed.startswith(_ZIP):
        raise UnsupportedError("archive", found=f"{name}: more than 64 MiB", supported="a copy on this machine")
    return _unpack(io.BytesIO(packed), url, name, limit_bytes, is_local=False, is_whole=is_whole)


async def _receive(name: str, response: "aiohttp.ClientResponse", limit_bytes: int) -> tuple[bytes, bool]:
    """Return what an answer begins with, and whether that is all."""
    packed = bytearray()
    try:
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            packed += chunk
            if len(packed) > (_ARCHIVE_BYTES if packed.startswith(_ZIP) else limit_bytes):
                return bytes(packed), False
    except ClientError as error:
        raise SourceUnavailableError(name, f"the answer broke off: {error}") from error
    return bytes(packed), True


def _unpack(
    packed: BinaryIO, url: str, name: str, limit_bytes: int, *, is_local: bool, is_whole: bool = True
) -> Sample:
    """Unpack what a file begins with; ``is_whole``: nothing follows ``packed``."""
    start = packed.read(8)
    packed.seek(0)
    for magic, what in _UNREAD.items():
        if start.startswith(magic):
            raise UnsupportedError("format of a file", found=f"{name}: {what}", supported="plain, gzip or zip")
    compression, entry = None, None
    if start.startswith(_GZIP):
        compression = CompressionFormat.GZIP
        content, is_end = _gunzip(packed, name, limit_bytes)
    elif start.startswith(_ZIP):
        compression = CompressionFormat.ZIP
        content, is_end, entry = _unzip(packed, name, limit_bytes)
    else:
        content = packed.read(limit_bytes)
        is_end = not packed.read(1)
    return Sample(
        url=url,
        shown_as=name,
        is_local=is_local,
        content=content,
        is_whole=is_end and is_whole,
        compression=compression,
        entry=entry,
    )


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


def _unzip(packed: BinaryIO, name: str, limit_bytes: int) -> tuple[bytes, bool, str | None]:
    with open_entry(packed, name, None) as (archive, entry):
        entries = list_entries(archive)
        if any(each.filename == "[Content_Types].xml" for each in entries):
            supported = "its sheet saved as CSV; a manifest of your own reads it with the reader Excel, READ-5"
            raise UnsupportedError("format of a file", found=f"{name}: an Excel workbook", supported=supported)
        content = entry.read(limit_bytes)
        return content, not entry.read(1), entries[0].filename if len(entries) > 1 else None
