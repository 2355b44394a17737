"""The port: who is let in, counted from the first packet, and who gives place (EX-11, EX-73).

Connections are taken one by one and not by the event loop's own server, which says nothing of their address before
they are taken, and nothing at all of those whose handshake never ends.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from odf_node.configuration.declaration import HIGHEST_PORT
from odf_node.http.access_log import share_of
from odf_node.http.middleware import Handler
from odf_node.http.served_node import Live

HANDSHAKE_S: Final = 10.0  # guess: a slow line; whoever never finishes holds one connection for no longer
FIRST_REQUEST_S: Final = 15.0
"""Within this after it was let in, a connection has to bring the whole head of a request.  # guess: a slow line"""
GIVES_PLACE_S: Final = 2.0
"""A connection that waited so long for a request ends where another needs its place.  # guess: some round trips"""
_NO_FILES_S: Final = 0.1  # guess: something may be closed until then

Protocol = Any
"""The HTTP library's own: one connection."""


@dataclass(slots=True)
class _Connection:
    share: str
    waits_since_s: float | None
    """When it began to wait for a request; None: one is under way."""
    is_greeted: bool = False
    has_asked: bool = False


class Connections:
    """Who is connected to a port, and who of them has no request under way; used on the event loop."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._known: dict[Protocol, _Connection] = {}

    def begin(self, protocol: Protocol) -> None:
        """Note that a request is under way."""
        if (known := self._known.get(protocol)) is not None:
            known.waits_since_s, known.has_asked = None, True

    def end(self, protocol: Protocol) -> None:
        """Note that it was answered."""
        if (known := self._known.get(protocol)) is not None:
            known.waits_since_s = _now_s()

    def admit(self, share: str, present: Iterable[Protocol]) -> bool:
        """Say whether one more may come in from there; one that only waits may have to go for it.

        Args:
            share: Where it comes from.
            present: All connections whose handshake is over.
        """
        there = set(present)
        self._known = {found: known for found, known in self._known.items() if found in there or not known.is_greeted}
        counts = Counter(known.share for known in self._known.values())
        limits = self._live.configuration.limits
        if counts[share] >= limits.address_connections:
            is_admitted = self._make_place(share)
        elif len(self._known) >= limits.connections:
            # Of whoever has most: all others keep what they have.
            is_admitted = self._make_place(counts.most_common(1)[0][0])
        else:
            return True
        if not is_admitted:
            self._live.metrics.turned_away.labels(reason="connections").inc()
        return is_admitted

    async def greet(
        self, server: web.Server, connection: socket.socket, share: str, tls: ssl.SSLContext | None
    ) -> None:
        """Take a connection in; whoever does not finish its handshake is gone."""
        loop, protocol = asyncio.get_running_loop(), server()
        known = self._known[protocol] = _Connection(share, _now_s())
        try:
            await loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=tls, ssl_handshake_timeout=HANDSHAKE_S if tls else None
            )
        except BaseException as error:
            del self._known[protocol]
            if isinstance(error, OSError):
                return
            raise
        known.is_greeted = True
        loop.call_later(FIRST_REQUEST_S, self._end_silent, protocol)

    def _end_silent(self, protocol: Protocol) -> None:
        known = self._known.get(protocol)
        if known is not None and not known.has_asked:
            self._live.metrics.turned_away.labels(reason="silent").inc()
            protocol.force_close()

    def _make_place(self, share: str) -> bool:
        waiting = [
            (known.waits_since_s, found)
            for found, known in self._known.items()
            if known.share == share and known.is_greeted and known.waits_since_s is not None
        ]
        since_s, longest = min(waiting, key=lambda entry: entry[0], default=(_now_s(), None))
        if longest is None or _now_s() - since_s < GIVES_PLACE_S:
            return False
        del self._known[longest]
        longest.force_close()
        return True


def _now_s() -> float:
    return asyncio.get_running_loop().time()


CONNECTIONS: Final = web.AppKey("connections", Connections)


@web.middleware
async def note_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Note which connections have a request under way."""
    connections = request.app[CONNECTIONS]
    connections.begin(request.protocol)
    try:
        return await handler(request)
    finally:
        connections.end(request.protocol)


class HttpListener:
    """An open port."""

    def __init__(
        self, sockets: Sequence[socket.socket], server: web.Server, connections: Connections, tls: ssl.SSLContext | None
    ) -> None:
        self.sockets = tuple(sockets)
        self._server = server
        self._connections = connections
        self._tls = tls
        self._greeting: set[asyncio.Task[None]] = set()
        self._accepting = [self._open(listening) for listening in self.sockets]

    def close(self) -> None:
        """Take nobody else; those who are there stay."""
        for task in (*self._accepting, *self._greeting):
            task.cancel()

    def _open(self, listening: socket.socket) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(self._accept(listening))
        # Not before the task is done: the event loop looks at the socket until then.
        task.add_done_callback(lambda _: listening.close())
        return task

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        async for connection, share in iter_arrivals(listening):
            if not self._connections.admit(share, self._server.connections):
                connection.close()
                continue
            task = loop.create_task(self._connections.greet(self._server, connection, share, self._tls))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)


async def listen(
    runner: web.AppRunner, host: str, port: int, *, connections: Connections, tls: ssl.SSLContext | None = None
) -> HttpListener:
    """Open the port; connections beyond the limits are closed at once, so that files can always be opened.

    Raises:
        OSError, OverflowError: The address cannot be listened on.
    """
    if runner.server is None:
        raise RuntimeError("the runner is set up before it listens")
    return HttpListener(await open_sockets(host, port), runner.server, connections, tls)


async def iter_arrivals(listening: socket.socket) -> AsyncIterator[tuple[socket.socket, str]]:
    """Yield who comes to a socket that listens, and where they come from, as limits count it; without end."""
    while True:
        try:
            connection, address = await asyncio.get_running_loop().sock_accept(listening)
        except OSError:
            await asyncio.sleep(_NO_FILES_S)  # the machine has no room for one more just now
            continue
        yield connection, share_of(address[0])


async def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Listen at every address that a host has.

    Raises:
        OSError, OverflowError: The address cannot be listened on.
    """
    if not 0 <= port <= HIGHEST_PORT:  # the C library takes it modulo 65536
        raise OverflowError(f"a port is 0 to {HIGHEST_PORT}")
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            listening = socket.create_server(address[:2], family=family)
            listening.setblocking(False)
            opened.append(listening)
    except BaseException:
        for listening in opened:
            with suppress(OSError):
                listening.close()
        raise
    return opened
