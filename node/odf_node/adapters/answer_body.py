"""The body of an HTTP answer, piece by piece; that of a large one in memory that is used again and again.

An HTTP client's stream makes an object of every few hundred kilobytes, copies it and gives its memory back to the
system, which is a third of what receiving a large file costs. So the connection of a large answer is taken over behind
its fields, and given back in order behind its body, ready for the next request.

Source: clauses EX-12 and EX-13 in ``spec/extensions/exchange.md``.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import aiohttp

from odf_node.byte_rate import ByteRate
from odf_protocol.exchange.limits import MIB

DIRECT_BYTES: Final = 16 * MIB
"""From here on a body is received directly (guess: several pieces, so that the memory is used again)."""
PIECE_BYTES: Final = 4 * MIB
"""Measured: with pieces of 1 MiB, handing them from thread to thread costs a fifth more."""
_PIECES: Final = 3
"""One that is written, one that is filled, and one that is ready for whichever is done first."""
_LENT_PIECES: Final = 2
_TELL_S: Final = 0.5  # guess: how long a person waits for a figure to move


class AnswerBody(Protocol):
    """A body that is read from its beginning to its end."""

    async def read(self) -> bytes | memoryview:
        """Return what came next, of any length; nothing at the end, also where that comes too early.

        A ``memoryview`` is lent: its memory is used again when two more have been asked for.

        Raises:
            TimeoutError, aiohttp.ClientError: Nothing comes any more.
        """
        ...


@contextmanager
def open_body(answer: aiohttp.ClientResponse, *, rate: ByteRate, stall_s: float) -> Iterator[AnswerBody]:
    """Open the body of an answer whose fields were read, and nothing else.

    Args:
        answer: The answer; to be left after this.
        rate: How fast it may come.
        stall_s: How long nothing may come, in seconds.
    """
    left_bytes = answer.content_length or 0  # the client refuses answers with a length and frames
    client = None if answer.connection is None else answer.connection.protocol
    transport = None if client is None else client.transport
    if client is None or transport is None or left_bytes < DIRECT_BYTES or rate.is_limited:
        yield StreamedBody(answer.content, rate)
        return
    early = []
    # What the client has received already; to read it may let the client receive more.
    while data := answer.content.read_nowait():
        early.append(data)
    body = DirectBody(transport, early, left_bytes - sum(map(len, early)), stall_s=stall_s)
    if body.is_whole:
        yield body  # the client knows that it is, and has given the connection back
        return
    client.pause_reading()  # its clock of silence stands still meanwhile
    transport.set_protocol(body)
    transport.resume_reading()
    try:
        yield body
    finally:
        transport.pause_reading()
        transport.set_protocol(client)
        if body.is_lost:
            client.connection_lost(body.error)
        elif body.is_whole:
            # As the client's own parser does behind a body: the connection can take the next request.
            answer.content.feed_eof()


class StreamedBody:
    """A body as the HTTP client gives it."""

    def __init__(self, content: aiohttp.StreamReader, rate: ByteRate) -> None:
        """Make it from the client's stream; where the rate is limited, pieces are small."""
        self._content = content
        self._rate = rate

    async def read(self) -> bytes:
        """See ``AnswerBody``."""
        return await (self._content.read(self._rate.piece_bytes) if self._rate.is_limited else self._content.readany())


class DirectBody(asyncio.BufferedProtocol):
    """A body that the system writes into pieces of memory of our own; a protocol of its connection meanwhile.

    A piece is filled, then read, then lent, then free again. When none is free the connection is not read, so that its
    sender waits.
    """

    def __init__(self, transport: asyncio.Transport, early: list[bytes], left_bytes: int, *, stall_s: float) -> None:
        """Make it; ``early`` came before, ``left_bytes`` are to come."""
        self.is_lost = False
        self.error: Exception | None = None
        self._transport = transport
        self._early = deque(early)
        self._left_bytes = left_bytes
        self._stall_s = stall_s
        self._loop = asyncio.get_running_loop()
        self._free = [memoryview(bytearray(PIECE_BYTES)) for _ in range(_PIECES)]
        self._filling: memoryview | None = self._free.pop()
        self._filled_bytes = 0
        self._full: deque[memoryview] = deque()
        self._lent: deque[memoryview] = deque()
        self._heard_s = 0.0
        self._changed = asyncio.Event()

    @property
    def is_whole(self) -> bool:
        """Whether nothing more is to come."""
        return not self._left_bytes

    async def read(self) -> bytes | memoryview:
        """See ``AnswerBody``; waits for a whole piece, or half a second for a part of one."""
        if self._early:
            return self._early.popleft()
        if len(self._lent) == _LENT_PIECES:
            self._take_back(self._lent.popleft())
        self._heard_s = self._loop.time()  # the time before was ours
        while not (self._full or self.is_whole or self.is_lost):
            await self._wait()
        if not self._full and self._filled_bytes:
            self._finish_piece()  # the last one, of a connection that was cut
        if not self._full:
            return b""
        self._lent.append(self._full.popleft())
        return self._lent[-1]

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as much as there is
        """Return where the next bytes go, never more than are to come; see ``asyncio.BufferedProtocol``."""
        assert self._filling is not None, "the connection is not read while no piece is free"
        return self._filling[self._filled_bytes : self._filled_bytes + self._left_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        """Take note of bytes that were received; see ``asyncio.BufferedProtocol``."""
        self._filled_bytes += nbytes
        self._left_bytes -= nbytes
        self._heard_s = self._loop.time()
        if self._filled_bytes == PIECE_BYTES or self.is_whole:
            self._finish_piece()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note that the connection has ended; see ``asyncio.BufferedProtocol``."""
        self.is_lost, self.error = True, exc
        self._changed.set()

    async def _wait(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(min(_TELL_S, self._stall_s)):
                await self._changed.wait()
        except TimeoutError:
            if self._filled_bytes:
                self._finish_piece()
            elif self._loop.time() - self._heard_s >= self._stall_s:
                raise

    def _finish_piece(self) -> None:
        assert self._filling is not None, "bytes are somewhere"
        self._full.append(self._filling[: self._filled_bytes])
        self._filling, self._filled_bytes = None, 0
        self._changed.set()
        if self._free and not self.is_whole:
            self._filling = self._free.pop()
        else:
            self._transport.pause_reading()

    def _take_back(self, lent: memoryview) -> None:
        self._free.append(memoryview(lent.obj))
        if self._filling is None and not (self.is_whole or self.is_lost):
            self._filling = self._free.pop()
            self._transport.resume_reading()
