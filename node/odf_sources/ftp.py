"""Fetch a file of an FTP server, known again by the time of its last change where the server says it.

The server is asked by ``odf_sources.readers``, a process of its own.

Source: clause ING-32 in ``spec/plug-ins/sources.md``; RFC 1738 section 3.2.
"""

import secrets
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from odf_node.ports.sources import Fetched, UpToDate
from odf_node.sources.checks import check_no_password, check_value, fill_templates
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_node.sources.limits import SourceLimits
from odf_node.sources.reader_process import UnixMs, read_answer, run_reader
from odf_node.sources.source_state import find_last_modified, last_modified_state
from odf_node.sources.url import show_url
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStep,
    FetchStepUrl,
)
from odf_protocol.manifest.errors import At
from odf_protocol.timestamp import Timestamp

_PORT: Final = 21
_NONE: Final = "anonymous"
_NANOSECONDS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FtpPlace:
    """A file of a server; its path begins where the user's folder is, unless it begins with a slash."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    path: str


def parse_ftp_url(url: str) -> FtpPlace:
    """Read a URL of a file on an FTP server.

    Raises:
        MalformedError: It is none; the message does not show it, as it may hold a password.
    """
    expected = "ftp://host/path/of/file, and perhaps user:password@ before the host"
    try:
        parts = urlsplit(url)
        port, host = parts.port or _PORT, parts.hostname
    except ValueError:
        raise MalformedError("URL of a file", expected=expected, found="something that is no URL") from None
    path = unquote(parts.path.removeprefix("/"))
    user, password = unquote(parts.username or _NONE), unquote(parts.password or "")
    if not host or not path or path.endswith("/") or parts.query or parts.fragment:
        raise MalformedError("URL of a file", expected=expected, found="no host, no file, a query or a fragment")
    # Python's own reading of URLs leaves some of them out.
    if any(not each.isprintable() for each in (url, host, user, password, path)):
        raise MalformedError("URL of a file", expected=expected, found="a line end or another control character")
    return FtpPlace(host, port, user, password, path)


class FtpSource(SourceKind):
    """Files of FTP servers."""

    steps = (FetchStepUrl,)
    schemes = ("ftp",)
    form = "ftp://host/path"

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        assert isinstance(step, FetchStepUrl)
        check_no_password(step.url, at / "url")
        check_value(lambda: parse_ftp_url(fill_templates(step.url)), at / "url")

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        assert isinstance(step, FetchStepUrl)
        return await fetch_ftp(step, context)


class _FoundFile(msgspec.Struct):
    """What a reader says of a file; a server may not tell its date."""

    modified_ms: UnixMs | None = None


async def fetch_ftp(step: FetchStepUrl, context: FetchContext) -> Fetched | UpToDate:
    """Fetch an ``ftp`` URL; see ``SourceReader.fetch``."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise UnsupportedError("event time of a URL source", found="FromPath", supported="FromMetadata, FromSystemTime")
    place, name = parse_ftp_url(step.url), show_url(step.url)
    target = context.folder / f"fetched-{secrets.token_hex(8)}"
    request = _request_of(place, find_last_modified(context.state), context.limits)
    answer = await run_reader("odf_sources.readers.ftp", request, target=target, name=name, context=context)
    if answer.get("is_new") is not True:
        target.unlink()
        return UpToDate()
    modified_ms = read_answer(answer, _FoundFile, name).modified_ms
    modified_at = None if modified_ms is None else Timestamp.from_unix_ms(modified_ms)
    return Fetched(
        path=target,
        name=name,
        source_state=None if modified_at is None else last_modified_state(modified_at),
        event_time=context.now if isinstance(step.event_time, EventTimeSourceFromSystemTime) else modified_at,
    )


def _request_of(place: FtpPlace, known: Timestamp | None, limits: SourceLimits) -> dict[str, Any]:
    return {
        "host": place.host,
        "port": place.port,
        "user": place.user,
        "password": place.password,
        "path": place.path,
        "known_ms": None if known is None else known.seconds * 1000 + known.nanoseconds // _NANOSECONDS_PER_MS,
        "size_bytes": limits.size_bytes,
        "wait_s": limits.read_s,
    }


SOURCE: Final = FtpSource()
