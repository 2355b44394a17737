"""HTTP requests to somebody who is not trusted: bounded in size and time, redirects on a short leash (EX-11, EX-13).

Addresses come from the user, never from a peer: the only thing of a peer that is followed is a redirect to the same
host. So no answer of a peer can make this node talk to another one, or to its own network.
"""

import asyncio
import io
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Self, TypeVar

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from odf_node import __version__
from odf_node.adapters.http_failures import error_of_status, mapped_failures
from odf_node.adapters.public_resolver import SteadyResolver
from odf_node.byte_rate import ByteRate
from odf_node.ports.peer_errors import PeerUnavailableError
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.exchange.limits import (
    MAX_HEADER_FIELD_BYTES,
    MAX_JSON_BYTES,
    MAX_REDIRECTS,
    MAX_REQUEST_LINE_BYTES,
    MESSAGE_S,
    PREPARE_S,
    STALL_S,
    message_limit_s,
)
from odf_protocol.http_signatures import content_digest

_Result = TypeVar("_Result")

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_READ_BUFFER_BYTES: Final = 1024 * 1024
_PARALLEL: Final = 4  # guess: hides the waiting of small requests on ordinary lines


SignRequest = Callable[[str, URL, Mapping[str, str]], Mapping[str, str]]
"""From method, address and fields of a request to the fields that sign it."""

_HIDDEN: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How patient a client is. ``token`` goes to the peer's own origin only."""

    connect_s: float = 10.0
    stall_s: float = STALL_S
    message_s: float = MESSAGE_S
    attempts: int = 5
    """In a row without progress; an attempt that brought bytes starts the count again."""
    backoff_s: float = 0.25
    max_backoff_s: float = 8.0
    prepare_s: float = PREPARE_S
    """How long a peer that computes an object again is waited for (CACHE-6)."""
    parallel: int | None = None
    """How many objects move at once; None: as many as suit the place."""
    rate: ByteRate = field(default_factory=ByteRate, compare=False)
    """Shared by everything that is to stay below it together."""
    token: str | None = field(default=None, repr=False)
    sign: "SignRequest | None" = field(default=None, repr=False)
    """Signs requests where the peer hides something from those who do not say who they are (EX-53)."""

    @property
    def objects_at_once(self) -> int:
        """How many objects move at once to or from a node or server."""
        return self.parallel or _PARALLEL


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer in memory."""

    status: int
    content_type: str
    body: bytes


class HttpClient:
    """One session with one peer; an asynchronous context manager."""

    def __init__(self, settings: ClientSettings, *, resolver: AbstractResolver | None = None) -> None:
        """Make it; ``resolver`` finds hosts, None: those that this node's user named."""
        self.settings = settings
        self.resolver = resolver or SteadyResolver()
        self.may_sign = False
        """Set for peers that know what a node's signature is; others are not told who asks."""
        self._signs = False
        self._session: aiohttp.ClientSession | None = None
        self._socket_origin: URL | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self.settings.objects_at_once + 2, socket_factory=self._open_socket, resolver=self.resolver
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=self.settings.connect_s, sock_read=self.settings.stall_s
            ),
            # Compressed answers would hide how much comes out of them; packs are compressed by us, and bounded.
            headers={"User-Agent": f"odf-node/{__version__}", "Accept-Encoding": "identity"},
            auto_decompress=False,
            read_bufsize=_READ_BUFFER_BYTES,
            max_line_size=MAX_REQUEST_LINE_BYTES,
            max_field_size=MAX_HEADER_FIELD_BYTES,
            middlewares=(self._keep_sockets_home,),
        )
        return self

    async def _keep_sockets_home(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        # The HTTP client follows redirects of WebSockets without being asked.
        if "Upgrade" in request.headers and request.url.origin() != self._socket_origin:
            raise UnsupportedError("redirect of a WebSocket", found=str(request.url), supported="none")
        return await handler(request)

    def _open_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        opened = socket.socket(family, kind, protocol)
        # Uploads have no limit of their own in the HTTP client: the kernel ends a connection that takes nothing.
        if family in {socket.AF_INET, socket.AF_INET6}:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self.settings.stall_s * 1000))
        return opened

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def open_socket(
        self, url: URL, *, headers: Mapping[str, str], max_message_bytes: int, close_s: float
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket, to this address and no other.

        Raises:
            PeerUnavailableError: The peer cannot be reached.
            OdfError: As ``error_of_status``, where it does not want one.
        """
        if self._session is None:
            raise RuntimeError("the client is used outside of its context")
        sent = dict(headers)
        if self.settings.token is not None:
            sent["Authorization"] = f"Bearer {self.settings.token}"

        self._socket_origin = url.origin()
        with mapped_failures(str(url)):
            try:
                opened = self._session.ws_connect(
                    url,
                    headers=sent,
                    max_msg_size=max_message_bytes,
                    timeout=aiohttp.ClientWSTimeout(ws_close=close_s),
                    compress=0,
                )
                async with opened as socket:
                    yield socket
            except aiohttp.WSServerHandshakeError as error:
                raise error_of_status(str(url), error.status, "dataset") from error

    @asynccontextmanager
    async def open(
        self, method: str, url: URL, *, headers: Mapping[str, str] | None = None, data: Any = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request, follow redirects to the same host, and give the answer with its body still unread.

        Raises:
            PeerUnavailableError: The peer cannot be reached, or goes away while the answer is read.
            MalformedError: What comes is not HTTP, or is compressed although nobody asked for it.
            UnsupportedError: A redirect to somewhere else.
        """
        if self._session is None:
            raise RuntimeError("the client is used outside of its context")
        asked = url
        fields = dict(headers or {})
        if self.settings.token is not None:
            fields["Authorization"] = f"Bearer {self.settings.token}"
        redirects = 0
        while redirects <= MAX_REDIRECTS:
            sent = fields
            if self._signs and self.settings.sign is not None:
                sent = fields | dict(self.settings.sign(method, asked, fields))
            with mapped_failures(str(asked)):
                async with self._session.request(
                    method, asked, headers=sent, data=data, allow_redirects=False
                ) as answer:
                    if answer.status in _HIDDEN and self._begins_to_sign(method):
                        continue
                    if answer.status not in _REDIRECTS:
                        _reject_encoding(answer)
                        yield answer
                        return
                    asked = _redirected(asked, answer)
                    redirects += 1
        raise UnsupportedError(f"chain of redirects from {url}", found=f"more than {MAX_REDIRECTS}")

    def sign_all(self, wanted: bool) -> None:
        """Sign every request from now on, if this client can sign."""
        self._signs = wanted and self.settings.sign is not None

    def _begins_to_sign(self, method: str) -> bool:
        """Say whether the request is to be sent once more, signed: the peer may know this node."""
        # A body that was sent is used up.
        begins = self.may_sign and not self._signs and self.settings.sign is not None and method == "GET"
        self._signs = self._signs or begins
        return begins

    async def ask(
        self,
        method: str,
        url: URL,
        *,
        limit_bytes: int = MAX_JSON_BYTES,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Send one request and read the whole answer, whatever its status; as ``open``, without retries."""
        # A file in memory is sent in pieces; bytes would be sent in one, and hold up everything else meanwhile.
        body = None if data is None else io.BytesIO(data)
        fields = dict(headers or {})
        if data is not None and self._signs:
            fields["Content-Digest"] = content_digest(data)
        # Before the time of the message runs: what it was is known afterwards, and the next one waits for it.
        await self.settings.rate.wait()
        limit_s = message_limit_s(max(limit_bytes, len(data or b"")), self.settings.message_s)
        with mapped_failures(str(url)):
            async with (
                asyncio.timeout(limit_s),
                self.open(method, url, headers=fields, data=body) as got,
            ):
                body_read = await _read_body(got, limit_bytes)
                self.settings.rate.take(len(body_read) + len(data or b""))
                return HttpAnswer(got.status, got.content_type, body_read)

    async def get_bytes(self, url: URL, what: str, *, limit_bytes: int) -> bytes:
        """Get a whole body of at most ``limit_bytes``, with retries.

        Raises:
            PeerNotFoundError, PeerForbidsError, PeerUnavailableError, MalformedError: As the peer answers.
        """

        async def attempt() -> bytes:
            answer = await self.ask("GET", url, limit_bytes=limit_bytes)
            if answer.status != HTTPStatus.OK:
                raise error_of_status(str(url), answer.status, what, answer.body, answer.content_type)
            return answer.body

        return await self.retry(attempt)

    async def retry(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Repeat what fails because the peer is unavailable, waiting longer each time."""
        for number in range(self.settings.attempts):
            try:
                return await attempt()
            except PeerUnavailableError:
                if number + 1 == self.settings.attempts:
                    raise
                await self.back_off(number)
        raise ValueError("a client makes at least one attempt")

    async def back_off(self, failures: int) -> None:
        """Wait before the next attempt after ``failures`` (from 0) in a row."""
        longest = min(self.settings.max_backoff_s, self.settings.backoff_s * 2**failures)
        # Spread, so that clients that were cut off together do not come back together.
        await asyncio.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret


async def _read_body(answer: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """Read an answer within its limit; of a failure the status counts, and its page may be of any size."""
    if answer.status < HTTPStatus.BAD_REQUEST:
        return await read_bounded(answer, limit_bytes)
    try:
        return await read_bounded(answer, MAX_JSON_BYTES)
    except MalformedError:
        return b""


async def read_bounded(answer: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """Read a body of at most ``limit_bytes``.

    Raises:
        MalformedError: It is longer, or says that it will be.
    """
    stated = answer.content_length
    if stated is not None and stated > limit_bytes:
        raise MalformedError("answer", where=str(answer.url), expected=f"at most {limit_bytes} bytes", found=stated)
    parts: list[bytes] = []
    size_bytes = 0
    while part := await answer.content.readany():
        size_bytes += len(part)
        if size_bytes > limit_bytes:
            raise MalformedError("answer", where=str(answer.url), expected=f"at most {limit_bytes} bytes", found="more")
        parts.append(part)
    return b"".join(parts)


def _redirected(asked: URL, answer: aiohttp.ClientResponse) -> URL:
    try:
        target = asked.join(URL(answer.headers.get("Location", "")))
    except ValueError as error:
        raise MalformedError("redirect", where=str(asked), expected="an address", found=str(error)) from error
    is_upgrade = asked.scheme == "http" and target.scheme == "https" and asked.is_default_port()
    same_door = target.scheme == asked.scheme and target.port == asked.port
    if target.host != asked.host or not (same_door or (is_upgrade and target.is_default_port())):
        raise UnsupportedError(f"redirect from {asked}", found=str(target), supported="redirects to the same host")
    return target


def _reject_encoding(answer: aiohttp.ClientResponse) -> None:
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise MalformedError("answer", where=str(answer.url), expected="no Content-Encoding", found=repr(encoding))
