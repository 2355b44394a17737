"""What arrived whole in a pull that broke is not asked for again: real commands, a real server, kill -9 between."""

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from odf_node.adapters.object_folder import KEEP_DOWNLOADS_S
from odf_node.home_folder import HomeFolder
from odf_protocol.multihash import Multihash
from support.http_server import serving
from support.nodes import RanCommand, RealNode
from support.offers import PeerChain, root_chain

SLICES = 6
APPEAR_S = 240.0
MANIFEST = """
kind: DatasetSnapshot
version: 1
content: {name: other, kind: Root, metadata: []}
"""


@dataclass
class StaticServer:
    """A plain ODF server that sends one object only when it is told to, and counts what is asked for."""

    chain: PeerChain
    held_back: Multihash
    is_open: bool = False
    asked: Counter[str] = field(default_factory=Counter)
    never: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        kind, _, name = request.path.removeprefix("/cities/").partition("/")
        self.asked[name] += 1
        if (kind, name) == ("refs", "head"):
            return web.Response(text=str(self.chain.head.hash))
        contents = {str(block.hash): block.raw for block in self.chain.blocks} if kind == "blocks" else {}
        if kind == "data":
            contents = {str(object_hash): content for object_hash, content in self.chain.files.items()}
            if name == str(self.held_back) and not self.is_open:
                await self.never.wait()
        return web.Response(body=contents[name]) if name in contents else web.Response(status=404)


async def run(node: RealNode, *words: str) -> RanCommand:
    return await asyncio.to_thread(node.run, *words)


def kill_when(node: RealNode, object_count: int, *words: str) -> None:
    """Run a command and kill it when that many objects are in place."""
    command = subprocess.Popen(
        [sys.executable, "-m", "odf_node", *words, "--home", str(node.home)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    give_up_at = time.monotonic() + APPEAR_S
    while len(arrived(node)) < object_count:
        assert command.poll() is None
        assert time.monotonic() < give_up_at
        time.sleep(0.005)
    command.kill()
    command.wait()


def stored(node: RealNode) -> set[str]:
    return {path.name for path in node.home.glob("objects/*/*")}


def arrived(node: RealNode) -> set[str]:
    return {path.name for path in HomeFolder(node.home).downloads.glob("*/*") if path.suffix != ".part"}


def test_pull_that_was_killed_goes_on_without_what_had_arrived(tmp_path: Path) -> None:
    chain = root_chain(tmp_path, slices=0)
    for number in range(SLICES):
        chain.add_rows([(f"city {number}", number)])
    node = RealNode(tmp_path / "reader")
    (tmp_path / "other.yaml").write_text(MANIFEST)
    first = [str(item) for item in chain.files][:-1]
    server = StaticServer(chain, held_back=list(chain.files)[-1])

    async def story() -> None:
        async with serving(server.answer) as http:
            pull = ("pull", f"{http.base}/cities", "--policy", "unsigned")
            await asyncio.to_thread(kill_when, node, SLICES - 1, *pull)
            # Commands that clean up before they work, one of which writes with a time that is far ahead.
            assert (await run(node, "add", str(tmp_path / "other.yaml"))).code == 0
            assert (await run(node, "pull", "--all", "--system-time", "2100-01-01")).code != 5
            assert (arrived(node), stored(node)) == (set(first), set())
            server.is_open = True
            server.asked.clear()
            resumed = await run(node, *pull)
            assert resumed.code == 0, resumed.err

    asyncio.run(story())
    assert not any(server.asked[name] for name in first)
    assert server.asked[str(server.held_back)] == 1
    assert stored(node) == {str(item) for item in chain.files}
    assert not list(HomeFolder(node.home).downloads.iterdir())


@pytest.mark.parametrize("how", ["time", "command"])
def test_what_nobody_comes_back_for_goes_in_the_end(tmp_path: Path, how: str) -> None:
    chain = root_chain(tmp_path)
    node = RealNode(tmp_path / "reader")
    server = StaticServer(chain, held_back=list(chain.files)[-1])

    async def story() -> None:
        async with serving(server.answer) as http:
            await asyncio.to_thread(kill_when, node, 1, "pull", f"{http.base}/cities", "--policy", "unsigned")

    asyncio.run(story())
    assert len(arrived(node)) == 1
    if how == "time":
        long_ago = time.time() - KEEP_DOWNLOADS_S - 60
        for path in HomeFolder(node.home).downloads.iterdir():
            os.utime(path, (long_ago, long_ago))
        (tmp_path / "other.yaml").write_text(MANIFEST)
        node.must("add", str(tmp_path / "other.yaml"))
    else:
        assert "1 object" in node.must("cache", "clear").out
    assert arrived(node) == set()
    assert not list(HomeFolder(node.home).downloads.iterdir())
