"""A workspace of another ODF implementation, driven by its command line; ``ODF_PEER`` names its program's folder."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

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
        """Run a command; give what it says.

        Raises:
            PeerError: It fails.
        """
        process = await asyncio.create_subprocess_exec(
            Path(os.environ["ODF_PEER"], "kamu"),
            *("-q", *words),
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate()
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
        """Serve the workspace on a free port of loopback."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            Path(os.environ["ODF_PEER"], "kamu"),
            *(("-v",) if with_token else ("-q",)),
            *("system", "api-server", "--address", "127.0.0.1", "--http-port", str(port)),
            *(("--get-token",) if with_token else ()),
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        token = ""
        if with_token:
            while not (found := _TOKEN.search(await process.stderr.readline())):
                assert process.returncode is None
            token = found[1].decode()
        draining = asyncio.create_task(process.stderr.read())
        try:
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except ConnectionRefusedError:
                    assert process.returncode is None
                    await asyncio.sleep(0.05)  # it gives no sign when it listens
            yield PeerServer(f"http://127.0.0.1:{port}", token)
        finally:
            process.terminate()
            await process.wait()
            await draining
