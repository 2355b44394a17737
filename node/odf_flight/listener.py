"""The way in to the port: who is let in, counted from the first packet, and how long silence may last.

The library behind the port bounds neither connections nor handshakes nor what is brought. So it listens inside of this
machine, in a folder of this user alone, and bytes of those who were let in are passed to it and back, no faster than
the other side takes them. It knows each of them by the name of a socket, for which ``find_share`` knows the address.

Source: clauses FLIGHT-13 and FLIGHT-14 in ``spec/plug-ins/flight-sql.md``.
"""

import asyncio
import itertools
import socket
import ssl
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from odf_flight.brought_messages import BroughtMessages
from odf_node.http.listening import FIRST_REQUEST_S, HANDSHAKE_S, iter_arrivals
from odf_node.http.served_node import Live

SILENT_S: Final = 75.0
"""Whoever brought and took nothing for so long gives place to others.  # guess: a question may take 60 s"""
MAX_BYTES: Final = 32 << 20  # guess: at once; a message has at most a megabyte (FLIGHT-2)
BYTES_PER_S: Final = 1 << 20
"""So much more may be brought each second.  # guess"""
_CHUNK_BYTES: Final = 1 << 16
_SERVER: Final = "server"


@dataclass(slots=True, eq=False)
class _Listening:
    share: str
    began_s: float
    last_s: float
    brought_bytes: int = 0
    brought: BroughtMessages = field(default_factory=BroughtMessages)
    outside: asyncio.Transport | None = None

    def find_fault(self, chunk: bytes, now_s: float) -> str | None:
        """Say why the connection should end at what was brought; None: it may go on."""
        self.brought_bytes += len(chunk)
        if self.brought_bytes > MAX_BYTES + BYTES_PER_S * (now_s - self.began_s):
            return "bytes"
        return self.brought.find_fault(chunk)


class Listener:
    """Lets connections in to a server that listens at ``location``; used on the event loop."""

    def __init__(self, live: Live, folder: Path, tls: ssl.SSLContext | None) -> None:
        self._live = live
        self._folder = folder
        self._tls = tls
        self._visits: dict[str, _Listening] = {}
        self._numbers = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: list[asyncio.Task[None]] = []

    @property
    def location(self) -> str:
        """Where the server has to listen."""
        return f"grpc+unix://{self._folder / _SERVER}"

    def find_share(self, peer: str) -> str | None:
        """Return where a caller comes from, as limits count it, by the name that the server has for it; thread-safe."""
        visit = self._visits.get(peer.rpartition("/")[2])
        return None if visit is None else visit.share

    def open(self, sockets: Sequence[socket.socket]) -> None:
        """Let in who comes to these, which listen."""
        self._accepting += [asyncio.get_running_loop().create_task(self._accept(each)) for each in sockets]

    def shut(self) -> None:
        """Let nobody in any more; those who are there stay."""
        for task in self._accepting:
            task.cancel()

    async def empty(self) -> None:
        """End those who are there."""
        self.shut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._accepting, *self._tasks, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        with listening:
            await self._accept_all(listening)

    async def _accept_all(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        async for connection, share in iter_arrivals(listening):
            if not self._admit(share):
                self._live.metrics.turned_away.labels(reason="flight connections").inc()
                connection.close()
                continue
            name, now_s = f"c{next(self._numbers)}", loop.time()
            self._visits[name] = _Listening(share, now_s, now_s)
            task = loop.create_task(self._receive(connection, name))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _admit(self, share: str) -> bool:
        """Say whether one more may come in from there; one who is silent may have to go for it."""
        limits = self._live.configuration.limits
        counts = Counter(visit.share for visit in self._visits.values())
        if counts[share] >= limits.address_connections:
            return self._make_place(share)
        if len(self._visits) >= limits.connections:
            return self._make_place(counts.most_common(1)[0][0])
        return True

    def _make_place(self, share: str) -> bool:
        name, visit = min(
            ((name, visit) for name, visit in self._visits.items() if visit.share == share),
            key=lambda each: each[1].last_s,
        )
        if asyncio.get_running_loop().time() - visit.last_s < SILENT_S or visit.outside is None:
            return False
        del self._visits[name]
        visit.outside.abort()
        return True

    async def _receive(self, connection: socket.socket, name: str) -> None:
        visit = self._visits[name]
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                await self._pass_on(connection, name, visit)
        finally:
            self._visits.pop(name, None)
            connection.close()

    async def _pass_on(self, connection: socket.socket, name: str, visit: _Listening) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(_CHUNK_BYTES)
        transport, protocol = await loop.connect_accepted_socket(
            partial(asyncio.StreamReaderProtocol, reader),
            connection,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_S if self._tls else None,
        )
        visit.outside = transport
        outside = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            async with asyncio.timeout(FIRST_REQUEST_S):
                first = await reader.read(_CHUNK_BYTES)
            if not self._may_pass(first, visit):
                return
            with self._named(name) as inner:
                await loop.sock_connect(inner, str(self._folder / _SERVER))
                answers, inside = await asyncio.open_connection(sock=inner)
                try:
                    inside.write(first)
                    ways = [self._copy(reader, inside, visit, is_brought=True)]
                    ways.append(self._copy(answers, outside, visit, is_brought=False))
                    # When one side has ended, nothing more comes of the other.
                    running = [loop.create_task(way) for way in ways]
                    try:
                        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for task in running:
                            task.cancel()
                        await asyncio.gather(*running, return_exceptions=True)
                finally:
                    inside.transport.abort()
        finally:
            await _finish(outside)

    @contextmanager
    def _named(self, name: str) -> Iterator[socket.socket]:
        place = self._folder / name
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as inner:
            inner.setblocking(False)
            inner.bind(str(place))
            try:
                yield inner
            finally:
                place.unlink(missing_ok=True)

    async def _copy(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, visit: _Listening, *, is_brought: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        while chunk := await source.read(_CHUNK_BYTES):
            visit.last_s = loop.time()
            if is_brought and not self._may_pass(chunk, visit):
                return
            target.write(chunk)
            await target.drain()

    def _may_pass(self, chunk: bytes, visit: _Listening) -> bool:
        fault = visit.find_fault(chunk, visit.last_s)
        if fault is not None:
            self._live.metrics.turned_away.labels(reason=f"flight {fault}").inc()
        return fault is None


async def _finish(outside: asyncio.StreamWriter) -> None:
    """Send what is left, to those who still read; others lose it."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            outside.close()
            await outside.wait_closed()
    outside.transport.abort()
