"""Fetch one document over HTTP.

Redirects are followed here and not by the client library, because headers that a manifest declares (keys, tokens) are
meant for the host it names and for no other, and because whoever runs a server out there must not have this node fetch,
and publish, what only it can reach (ING-22).
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp import ClientError
from yarl import URL

from odf_node import __version__
from odf_node.adapters.public_resolver import OneWayResolver
from odf_node.ports.sources import (
    Fetched,
    SourceNotFoundError,
    SourceRejectedError,
    SourceTooLargeError,
    SourceUnavailableError,
    UpToDate,
)
from odf_node.sources.checks import check_no_password
from odf_node.sources.contract import FetchContext, SourceKind, SourceSettings
from odf_node.sources.limits import BoundedFile, SourceLimits, wait_held_back
from odf_node.sources.source_state import (
    etag_state,
    find_etag,
    find_last_modified,
    is_same_version,
    last_modified_state,
)
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import (
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStep,
    FetchStepUrl,
    SourceState,
)
from odf_protocol.manifest.errors import At
from odf_protocol.public_addresses import is_public_host
from odf_protocol.timestamp import Timestamp

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OK: Final = 200
_NOT_MODIFIED: Final = 304
_GONE: Final = frozenset({404, 410})
_LATER: Final = frozenset({429, 503})
"""Answers whose ``Retry-After`` is heeded (RFC 9110, section 10.2.3; SCHED-12)."""
_LONGEST_RETRY_S: Final = 10**9  # guess: beyond what anybody keeps to, and within what all count in


class WebSource(SourceKind):
    """Documents of web servers."""

    steps = (FetchStepUrl,)
    schemes = ("http", "https")
    form = "http://..., https://..."

    def check(self, step: FetchStep, at: At, settings: SourceSettings) -> None:
        assert isinstance(step, FetchStepUrl)
        check_no_password(step.url, at / "url", end_of_authority="/?#")

    async def fetch(self, step: FetchStep, context: FetchContext) -> Fetched | UpToDate:
        assert isinstance(step, FetchStepUrl)
        return await fetch_url(step, context)


async def fetch_url(
    step: FetchStepUrl,
    context: FetchContext,
    *,
    resolver: OneWayResolver | None = None,
) -> Fetched | UpToDate:
    """Fetch an ``http`` or ``https`` URL; see ``SourceReader.fetch``. ``resolver`` finds hosts; None: as usual."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise UnsupportedError("event time of a URL source", found="FromPath", supported="FromMetadata, FromSystemTime")
    try:
        onward = resolver or OneWayResolver()
        async with (
            asyncio.timeout(context.limits.total_s) as deadline,
            open_response(step, context.state, context.limits, onward) as response,
        ):
            return await _receive(step, response, context, deadline)
    except TimeoutError as error:
        raise SourceUnavailableError(
            show_url(step.url), f"no complete answer within {context.limits.total_s:g} s"
        ) from error


async def _receive(
    step: FetchStepUrl, response: "aiohttp.ClientResponse", context: FetchContext, deadline: asyncio.Timeout
) -> Fetched | UpToDate:
    name = show_url(step.url)
    if response.status == _NOT_MODIFIED and context.state is not None:
        return UpToDate()
    if response.status in _GONE:
        raise SourceNotFoundError(name, f"the server answers {response.status}: nothing is there")
    if response.status != _OK:
        asked_s = _read_retry_after_s(response.headers, context.now) if response.status in _LATER else 0
        reason = f"the server answers {response.status}"
        raise SourceUnavailableError(name, reason, status=response.status, retry_after_s=asked_s)
    new_state, modified_at = _read_version(response.headers)
    # Servers that ignore conditions answer with the same version again; taking it twice could repeat rows.
    if is_same_version(new_state, context.state):
        return UpToDate()
    if response.content_length is not None and response.content_length > context.limits.size_bytes:
        raise SourceTooLargeError(name, "size_bytes", context.limits.size_bytes)
    path = context.folder / f"fetched-{secrets.token_hex(8)}"
    await _save(name, response, path, context, deadline)
    event_time = context.now if isinstance(step.event_time, EventTimeSourceFromSystemTime) else modified_at
    return Fetched(path=path, name=name, source_state=new_state, event_time=event_time)


async def _save(
    name: str, response: "aiohttp.ClientResponse", path: Path, context: FetchContext, deadline: asyncio.Timeout
) -> None:
    rate = context.rate
    with BoundedFile(path, name, context.limits) as file:
        try:
            async for chunk in response.content.iter_chunked(rate.chunk_bytes):
                rate.take(len(chunk))
                await wait_held_back(rate, deadline)
                # Not in a thread: a cancelled fetch closes the file, and a thread could still be writing to it.
                file.write(chunk)
        except ClientError as error:
            raise SourceUnavailableError(name, f"the answer broke off: {_one_line(error)}") from error


@asynccontextmanager
async def open_response(
    step: FetchStepUrl, state: SourceState | None, limits: SourceLimits, resolver: OneWayResolver
) -> AsyncIterator["aiohttp.ClientResponse"]:
    """Ask for a URL, and follow where the answer leads; the status is the caller's to look at.

    Raises:
        SourceUnavailableError, SourceRejectedError, MalformedError: There is no answer.
    """
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_s, sock_read=limits.read_s)
    # Each hop is judged when it is taken: neither an answer of a name server nor a connection is used again.
    connector = aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, force_close=True)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        name = show_url(step.url)
        try:
            response = await _follow(session, step, state, limits, resolver)
        except aiohttp.ServerTimeoutError as error:
            raise SourceUnavailableError(name, "the server did not answer in time") from error
        except (aiohttp.InvalidURL, ValueError) as error:
            expected = "a URL http(s)://host/... and headers of one line"
            raise MalformedError("fetch step Url", expected=expected, found=name) from error
        except (aiohttp.ClientError, OSError) as error:
            if resolver.rejected_host is not None:
                raise _reject_inside(name, resolver.rejected_host) from error
            raise SourceUnavailableError(name, _reason(error)) from error
        async with response:
            yield response


async def _follow(
    session: "aiohttp.ClientSession",
    step: FetchStepUrl,
    state: SourceState | None,
    limits: SourceLimits,
    resolver: OneWayResolver,
) -> "aiohttp.ClientResponse":
    name, url = show_url(step.url), URL(step.url)
    declared = {header.name: header.value for header in step.headers or ()}
    for _ in range(limits.redirects + 1):
        # No resolver sees a literal address.
        is_public = is_public_host(url.host or "")
        if is_public is False and resolver.was_public:
            raise _reject_inside(name, url.host or "")
        resolver.was_public = resolver.was_public or bool(is_public)
        sent = {**_own_headers(state), **declared}
        response = await session.get(url, headers=sent, allow_redirects=False, proxy=_find_proxy(url))
        location = response.headers.get("Location")
        if response.status not in _REDIRECTS or location is None:
            return response
        response.release()
        target = _resolve(name, url, location)
        if target.origin() != url.origin():
            declared = {}
        url = target
    raise SourceRejectedError(
        name, "redirects", f"more than {limits.redirects} redirects, the last one to {show_url(str(url))}"
    )


def _find_proxy(url: "URL") -> "URL | None":
    """Return the operator's proxy, as every program on the machine uses it.

    The library would read it by itself, and with it the user's ``.netrc``: passwords that no manifest names.
    """
    proxy = None if proxy_bypass(url.host or "") else getproxies().get(url.scheme)
    return None if proxy is None else URL(proxy)


def _resolve(name: str, url: "URL", location: str) -> "URL":
    try:
        target = url.join(URL(location))
    except ValueError as error:
        raise SourceUnavailableError(name, "a redirect to something that is no URL") from error
    shown = show_url(str(target))
    if target.scheme not in {"http", "https"} or not target.host:
        raise SourceRejectedError(name, "redirect-target", f"a redirect to {shown}, which is not HTTP")
    if url.scheme == "https" and target.scheme == "http":
        raise SourceRejectedError(name, "redirect-target", f"a redirect from HTTPS to plain HTTP, {shown}")
    return target


def _reject_inside(name: str, host: str) -> SourceRejectedError:
    return SourceRejectedError(
        name, "redirect-target", f"a redirect from the public internet into a private network, to {host}"
    )


def show_url(url: str) -> str:
    """Write a URL for messages and records: without user, password and query, which may hold keys."""
    rest, query_text, _ = url.partition("#")[0].partition("?")
    scheme, slashes, authority = rest.partition("://")
    host, slash, path = authority.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}{'?...' if query_text else ''}"


def _own_headers(state: SourceState | None) -> dict[str, str]:
    # Identity: what is declared as gzip in the manifest must arrive as the gzip file it is.
    headers = {"User-Agent": f"odf-node/{__version__}", "Accept-Encoding": "identity"}
    etag, modified_at = find_etag(state), find_last_modified(state)
    if etag is not None:
        headers["If-None-Match"] = etag
    elif modified_at is not None:
        time = datetime.fromtimestamp(modified_at.seconds, UTC)
        headers["If-Modified-Since"] = format_datetime(time, usegmt=True)
    return headers


def _read_version(headers: Mapping[str, str]) -> tuple[SourceState | None, Timestamp | None]:
    # The time counts only where there is no ETag, as in the reference implementation: others must find the same rows.
    if etag := headers.get("ETag"):
        return etag_state(etag), None
    try:
        time = parsedate_to_datetime(headers.get("Last-Modified", ""))
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        modified_at = Timestamp(int(aware.timestamp()))
    except (ValueError, OverflowError, MalformedError):  # also a time that its zone moves out of all years
        return None, None
    return last_modified_state(modified_at), modified_at


def _read_retry_after_s(headers: Mapping[str, str], now: Timestamp) -> int:
    """Read for how long a server asks to be left alone; what is neither seconds nor a time is nothing."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:20]), _LONGEST_RETRY_S)
    try:
        time = parsedate_to_datetime(text)
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return max(0, min(int(aware.timestamp()) - now.seconds, _LONGEST_RETRY_S))
    except (ValueError, OverflowError):
        return 0


def _reason(error: Exception) -> str:
    """Say why there is no answer, in words where the library only quotes the operating system."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "no such host is known; check the address"
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        return "no server answers there; check the address"
    return f"no usable answer: {_one_line(error)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
