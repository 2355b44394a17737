"""Bytes from the network into a staged object: hashing and writing in a thread while the next bytes arrive."""

import asyncio
from typing import Final, Self

from odf_node.ports.objects import StagedObject

CHUNK_BYTES: Final = 2 * 1024 * 1024
"""Bytes per step to the thread: some 4 ms of hashing, far more than the step costs."""
_MAX_CHUNKS: Final = 64  # guess: a peer may send bytes one by one, and each piece takes memory of its own


class StagedStream:
    """Writes to one staged object; at most one chunk is in the thread and one is being filled.

    An asynchronous context manager: on leaving, for whatever reason, all that was given is in the staged object and no
    thread works on it any more.
    """

    def __init__(self, staged: StagedObject) -> None:
        self._staged = staged
        self._filling: list[bytes] = []
        self._filling_bytes = 0
        self._writing: asyncio.Future[None] | None = None

    async def write(self, data: bytes) -> None:
        """Take bytes; waits only while the chunk before is still being written."""
        self._filling.append(data)
        self._filling_bytes += len(data)
        if self._filling_bytes >= CHUNK_BYTES or len(self._filling) >= _MAX_CHUNKS:
            await self._flush()

    async def finish(self) -> None:
        """Wait until everything is in the staged object."""
        await self._flush()
        await self._settle()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        writing = self._writing
        if writing is not None:
            await asyncio.wait([writing])
        # What arrived before the line broke is worth keeping: the next attempt goes on behind it.
        if self._filling and (writing is None or writing.exception() is None):
            await asyncio.wait([self._start_write()])

    async def _flush(self) -> None:
        await self._settle()
        if self._filling:
            self._start_write()

    def _start_write(self) -> asyncio.Future[None]:
        chunks, self._filling, self._filling_bytes = self._filling, [], 0
        self._writing = asyncio.get_running_loop().run_in_executor(None, self._staged.write, *chunks)
        return self._writing

    async def _settle(self) -> None:
        if self._writing is not None:
            # Shielded: the thread would go on writing into a file that the caller closes.
            await asyncio.shield(self._writing)
            self._writing = None
