"""A real HTTP server on the loopback whose answers a test writes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer as LoopbackServer

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Server:
    """Where the server is, and what it was asked."""

    base: str
    requests: list[web.Request] = field(default_factory=list)


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Server]:
    """Serve ``answer`` for every path until left."""
    requests: list[web.Request] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        return await answer(request)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    async with LoopbackServer(application) as server:
        yield Server(str(server.make_url("")).rstrip("/"), requests)


@asynccontextmanager
async def serving_bytes(reply: bytes, *, then_close: bool = True) -> AsyncIterator[str]:
    """Answer every connection with ``reply``, whatever was asked, and close it or leave it open."""

    connections: set[asyncio.StreamWriter] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        if then_close:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        try:
            yield f"http://{host}:{port}"
        finally:
            for writer in connections:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
