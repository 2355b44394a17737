"""Requests byte by byte, as no client library would send them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from yarl import URL


@asynccontextmanager
async def connected(
    url: str, *, source: str = "127.0.0.1"
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to a node from an address of the loopback network."""
    there = URL(url)
    assert there.host is not None
    reader, writer = await asyncio.open_connection(there.host, there.port, local_addr=(source, 0))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def send_raw(url: str, sent: bytes, *, wait_s: float = 20.0, source: str = "127.0.0.1") -> bytes:
    """Send bytes and give all that comes back until the node closes or ``wait_s`` passed."""
    came = b""
    async with connected(url, source=source) as (reader, writer):
        writer.write(sent)
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(wait_s):
                await writer.drain()
                while data := await reader.read(65_536):
                    came += data
    return came


def request_of(
    method: str, target: str, *, host: str = "localhost", body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    """Write a request that is the last of its connection."""
    fields = {"Host": host, "Connection": "close"} | ({"Content-Length": str(len(body))} if body else {})
    fields |= dict(headers or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


def status_of(answer: bytes) -> int:
    """Return the status of the first answer; 0: the node closed without one."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0
