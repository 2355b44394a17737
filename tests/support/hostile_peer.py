"""Servers that misbehave on purpose, byte by byte: what a client must survive.

A ``HostilePeer`` answers each request with what a script says. Scripts get the request's head as text and the open
connection; nothing of an HTTP library stands between them and the client.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Script = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Request:
    """The head of one request."""

    head: str
    number: int
    """From 0, counted per path."""

    @property
    def path(self) -> str:
        return self.head.split(" ", 2)[1]

    @property
    def range_start(self) -> int | None:
        found = re.search(r"^range: bytes=(\d+)-", self.head, re.IGNORECASE | re.MULTILINE)
        return None if found is None else int(found[1])


@dataclass
class HostilePeer:
    """Scripts by the end of the path; what no script is for is answered 404."""

    scripts: Mapping[str, Script]
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                request = Request(head, self.paths().count(path))
                self.requests.append(request)
                script = next((script for end, script in self.scripts.items() if path.endswith(end)), not_found)
                await script(request, writer)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def hostile_peer(scripts: Mapping[str, Script]) -> AsyncIterator[HostilePeer]:
    """Run a hostile peer on a free port of loopback; ``url`` is its address."""
    peer = HostilePeer(scripts)
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await peer.answer(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    peer.url = f"http://{host}:{port}"
    try:
        yield peer
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answer(
    body: bytes, *, status: str = "200 OK", headers: Mapping[str, str] | None = None, length: int | None = None
) -> Script:
    """Answer properly, or with a length that is not true."""

    async def script(request: Request, writer: asyncio.StreamWriter) -> None:
        stated = {"Content-Length": str(len(body) if length is None else length)} | dict(headers or {})
        writer.write(_head(status, stated) + body)
        if length is not None and length > len(body):
            await writer.drain()
            writer.close()

    return script


async def not_found(request: Request, writer: asyncio.StreamWriter) -> None:
    """Answer 404."""
    writer.write(_head("404 Not Found", {"Content-Length": "0"}))


def cut_after(body: bytes, sent_bytes: int, *, times: int = 1_000_000, ranges: bool = True) -> Script:
    """Promise all of ``body``, send ``sent_bytes`` of what was asked for, and cut the line; behave after ``times``."""
    cuts = 0

    async def script(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal cuts
        start = request.range_start if ranges else None
        rest = body[start or 0 :]
        headers = {"Content-Length": str(len(rest))}
        if start is not None:
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        head = _head("200 OK" if start is None else "206 Partial Content", headers)
        cuts += 1
        if cuts > times:
            writer.write(head + rest)
            return
        writer.write(head + rest[:sent_bytes])
        await writer.drain()
        writer.close()

    return script


def endless(chunk: bytes = b"x" * 65_536, *, headers: Mapping[str, str] | None = None) -> Script:
    """Send for ever, without saying how much."""

    async def script(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(_head("200 OK", {"Transfer-Encoding": "chunked"} | dict(headers or {})))
        while True:
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()

    return script


def stall_after(body: bytes, sent_bytes: int) -> Script:
    """Promise all of ``body``, send some of it, and then nothing more."""

    async def script(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(_head("200 OK", {"Content-Length": str(len(body))}) + body[:sent_bytes])
        await writer.drain()
        await asyncio.Event().wait()

    return script


def chunked(body: bytes) -> Script:
    """Send ``body`` without a length, ended as it should be."""

    async def script(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(_head("200 OK", {"Transfer-Encoding": "chunked"}) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))

    return script


def redirect(target: str, *, status: str = "302 Found") -> Script:
    """Send the client elsewhere."""
    return answer(b"", status=status, headers={"Location": target})


def raw_bytes(data: bytes) -> Script:
    """Send what is no HTTP at all, and close."""

    async def script(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return script


def in_turn(*scripts: Script) -> Script:
    """Use one script for each request, and the last one for all that follow."""
    used = 0

    async def script(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal used
        chosen = scripts[min(used, len(scripts) - 1)]
        used += 1
        await chosen(request, writer)

    return script


def _head(status: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
