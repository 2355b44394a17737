"""A workspace of another ODF implementation, driven by its command line; ``ODF_PEER`` names its program's folder."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_LISTENS = re.compile(rb"API server is listening on: (http://127\.0\.0\.1:\d+)")
_COMMAND_S = 240.0  # guess: the longest takes half a minute on a machine that is slow and busy
_LONGEST_LINE_BYTES = 1024 * 1024  # guess: it logs all of its settings as one line
_TOKEN = re.compile(rb"Access token: ([A-Za-z0-9._-]+)")


@dataclass(frozen=True)
class PeerServer:
    """A server of a workspace; ``token`` is that of its owner, empty where none was asked for."""

    url: str
    token: str

    @property
    def smart(self) -> str:
        return f"odf+{self.url}"


class PeerError(Exception):
    """A command of the peer failed; its text says why."""


class PeerWorkspace:
    """One workspace; it holds every dataset once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    async def create(cls, folder: Path) -> "PeerWorkspace":
        await asyncio.to_thread(folder.mkdir, parents=True)
        workspace = cls(folder)
        await workspace.run("init")
        return workspace

    async def run(self, *words: str) -> str:
        """Run a command and return what it prints. One that spins for ever is ended, and asked once more.

        Raises:
            PeerError: It fails.
        """
        try:
            return await self._run(words)
        except TimeoutError:
            return await self._run(words)

    async def _run(self, words: tuple[str, ...]) -> str:
        process = await asyncio.create_subprocess_exec(
            Path(os.environ["ODF_PEER"], "kamu"),
            *("-q", *words),
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, error = await asyncio.wait_for(process.communicate(), _COMMAND_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        if process.returncode != 0:
            raise PeerError(out.decode() + error.decode())
        return out.decode() + error.decode()

    async def find_head(self, name: str) -> str:
        """Give the hash of the newest block, as it is shown."""
        log = await self.run("log", name, "--output-format", "yaml")
        found = re.search(r"# Block: (f1620[0-9a-f]{64})", log)
        assert found, log
        return found[1]

    @asynccontextmanager
    async def serving(self, *, with_token: bool = False) -> AsyncIterator[PeerServer]:
        """Serve the workspace on a port of loopback."""
        process = await asyncio.create_subprocess_exec(
            Path(os.environ["ODF_PEER"], "kamu"),
            # It takes whichever port is free, and says in its log which.
            *("-v", "system", "api-server", "--address", "127.0.0.1", "--http-port", "0"),
            *(("--get-token",) if with_token else ()),
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE_BYTES,
        )
        assert process.stderr is not None
        draining: asyncio.Task[bytes] | None = None
        try:
            url = await _read_until(process.stderr, _LISTENS)
            token = await _read_until(process.stderr, _TOKEN) if with_token else ""
            draining = asyncio.create_task(process.stderr.read())
            yield PeerServer(url, token)
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await (draining or process.stderr.read())
            await process.wait()


async def _read_until(log: asyncio.StreamReader, wanted: re.Pattern[bytes]) -> str:
    """Read a server's log up to what is wanted; fail with the log where it ends before."""
    lines = []
    while line := await log.readline():
        if found := wanted.search(line):
            return found[1].decode()
        lines.append(line)
    raise PeerError(b"".join(lines).decode())
