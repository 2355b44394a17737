"""Lines to a node that break in the middle of what it says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


class BadLine:
    """Forwards connections to a port; each one breaks after some bytes, until ``heal``."""

    def __init__(self, port: int, draw_cut: Callable[[], int]) -> None:
        self._port = port
        self._draw_cut = draw_cut
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_healed = False
        self.cuts = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        ends = [writer]
        try:
            from_target, to_target = await asyncio.open_connection("127.0.0.1", self._port)
            ends.append(to_target)
            there = asyncio.create_task(self._forward(reader, to_target))
            try:
                await self._forward_back(from_target, writer)
            finally:
                there.cancel()
                await asyncio.gather(there, return_exceptions=True)
        except (ConnectionError, asyncio.CancelledError):
            pass  # a line does not say why it broke
        finally:
            for end in ends:
                end.transport.abort()
                with suppress(ConnectionError):
                    await end.wait_closed()
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(16_384):
                writer.write(chunk)
                await writer.drain()

    async def _forward_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self._draw_cut()
        while chunk := await reader.read(4_096):
            if not self.is_healed and len(chunk) > left:
                writer.write(chunk[:left])
                await writer.drain()
                self.cuts += 1
                return
            left -= len(chunk)
            writer.write(chunk)
            await writer.drain()

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def bad_line(address: str, draw_cut: Callable[[], int]) -> AsyncIterator[tuple[BadLine, str]]:
    """Listen for an address on loopback.

    Args:
        address: ``http://127.0.0.1:PORT``.
        draw_cut: Gives for each connection how many bytes of answers pass before it breaks.

    Yields:
        The line, and its own address.
    """
    line = BadLine(int(address.rsplit(":", 1)[1]), draw_cut)
    server = await asyncio.start_server(line.connected, "127.0.0.1", 0)
    try:
        yield line, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await line.close()
