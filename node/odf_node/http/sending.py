"""Bytes of a file into an answer: by the kernel where it can, at a bounded rate, never for ever (EX-6, EX-11)."""

import asyncio
from typing import BinaryIO, Final

from aiohttp import web

from odf_node.byte_rate import ByteRate
from odf_node.http.access_log import note_sent
from odf_node.http.served_node import LIVE
from odf_protocol.exchange.limits import HELD_BACK_S, KIB, MIB, MIN_RATE_BYTES_PER_S, RATE_WINDOW_S

_CHUNK_BYTES: Final = 8 * MIB
"""What is handed to the kernel at once; what was sent is known to this precision."""
_SLOW_CHUNK_BYTES: Final = 256 * KIB
"""The same where a rate or encryption makes the node look at each piece."""


SEND_RATE: Final = web.AppKey("send_rate", ByteRate)
"""The rate that all answers with objects or packs share; follows the configuration."""


async def wait_to_send(request: web.Request, size_bytes: int) -> None:
    """Wait as the rate asks for a body that goes out in one piece, as long as its reader would (DAEMON-11)."""
    rate = request.app[SEND_RATE]
    rate.set(request.app[LIVE].configuration.limits.send_bytes_per_second)
    await rate.pay(size_bytes, max_s=HELD_BACK_S)


async def send_file(request: web.Request, answer: web.StreamResponse, file: BinaryIO, start: int, count: int) -> None:
    """Send ``count`` bytes of ``file`` from ``start``, after the headers.

    Raises:
        ConnectionResetError: The client is gone or too slow, or the file is shorter than promised.
    """
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client is gone")
    is_encrypted = transport.get_extra_info("ssl_object") is not None
    end = start + count
    while start < end:
        rate = request.app[SEND_RATE]
        rate.set(request.app[LIVE].configuration.limits.send_bytes_per_second)
        chunk = min(end - start, _SLOW_CHUNK_BYTES if rate.is_limited or is_encrypted else _CHUNK_BYTES)
        if rate.is_limited:
            chunk = min(chunk, rate.chunk_bytes)
        await rate.wait()
        rate.take(chunk)
        try:
            async with asyncio.timeout(RATE_WINDOW_S + chunk / MIN_RATE_BYTES_PER_S):
                if is_encrypted:
                    sent = await _write(answer, file, start, chunk)
                else:
                    sent = await asyncio.get_running_loop().sendfile(transport, file, start, chunk)
        except TimeoutError:
            transport.abort()
            raise ConnectionResetError("the client reads too slowly") from None
        note_sent(request, sent)
        if sent != chunk:
            # The promised length cannot be kept; only the end of the connection tells the client so.
            transport.abort()
            raise ConnectionResetError("the object on our disk is shorter than it was")
        start += sent


async def _write(answer: web.StreamResponse, file: BinaryIO, start: int, count: int) -> int:
    def read() -> bytes:
        file.seek(start)
        return file.read(count)

    data = await asyncio.to_thread(read)
    await answer.write(data)
    return len(data)
