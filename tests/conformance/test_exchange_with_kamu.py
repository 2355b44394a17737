"""Another ODF implementation pulls from our server, our client from its server and folders (EX-1, EX-4, EX-15)."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_peer
from odf_node.exchange.wanted import iter_wanted
from odf_node.ports.peer_client import PeerSpeaks
from odf_protocol.block import decode_block
from support.event_loop import in_loop
from support.exchange_nodes import KAMU_DATA, Chain, TestNode, read_kamu_chain

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

# Three ways to merge; from a few hundred bytes to some megabytes.
NAMES = ["countries.daily", "ledger.transactions", "upsert.accounts"]


class Workspace:
    """A workspace of the other implementation, driven by its command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    async def run(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            Path(os.environ["ODF_PEER"], "kamu"),
            "-q",
            *arguments,
            cwd=self.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate()
        assert process.returncode == 0, (arguments, out.decode(), error.decode())
        return out.decode() + error.decode()

    async def count_rows(self, name: str) -> int:
        rows = await self.run("sql", "--command", f'select count(*) as n from "{name}"', "-o", "ndjson")
        return int(json.loads(rows)["n"])

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            Path(os.environ["ODF_PEER"], "kamu"),
            *("-q", "system", "api-server", "--address", "127.0.0.1", "--http-port", str(port)),
            cwd=self.folder,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except ConnectionRefusedError:
                    assert process.returncode is None
                    await asyncio.sleep(0.05)  # it gives no sign when it listens
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            await process.wait()


async def make_workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "workspace")
    await workspace.run("init")
    return workspace


async def pull(address: str, node: TestNode) -> tuple[Chain, PeerSpeaks]:
    """Bring a dataset into the node as it is; the rules are for others to test."""
    async with await open_peer(address, ClientSettings(attempts=1)) as peer:
        head = await peer.get_head()
        packed = [block async for block in peer.iter_blocks(after=None, upto=head.head)]
        blocks = [decode_block(block.raw, expected_hash=None) for block in packed]
        with node.objects.writing():
            wanted = [item for block in blocks for item in iter_wanted(block.event)]
            await peer.fetch_objects(wanted, node.objects)
        objects = {item.hash: node.objects.get_path(item.hash).read_bytes() for item in wanted}
        return Chain(head.name, blocks, objects), peer.description.speaks


@in_loop
async def test_peer_pulls_from_our_server_verifies_and_queries(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await make_workspace(tmp_path)
    async with node.serving() as url:
        for name in NAMES:
            node.keep(read_kamu_chain(name))
            await workspace.run("pull", f"{url}/{name}", "--as", name, "--no-alias")
            assert "1 dataset(s) are valid" in await workspace.run("verify", name)
    assert await workspace.count_rows("countries.daily") == 55_534


@in_loop
async def test_peer_pulls_what_was_added_since(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await make_workspace(tmp_path)
    whole = read_kamu_chain("countries.daily")
    async with node.serving() as url:
        for end in (6, len(whole.blocks)):
            node.keep(Chain(whole.name, whole.blocks[:end], whole.objects))
            await workspace.run("pull", f"{url}/{whole.name}", "--as", whole.name, "--no-alias")
        assert "valid" in await workspace.run("verify", whole.name)
    log = await workspace.run("log", whole.name, "--output-format", "yaml")
    assert str(whole.head.hash) in log


@in_loop
async def test_our_client_pulls_from_the_peers_server(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await make_workspace(tmp_path)
    for name in NAMES:
        await workspace.run("pull", f"file://{KAMU_DATA / name}/", "--as", name, "--no-alias")
    async with workspace.serving() as url:
        for name in NAMES:
            chain, speaks = await pull(f"{url}/{name}", node)
            expected = read_kamu_chain(name)
            assert speaks is PeerSpeaks.SIMPLE
            assert [block.raw for block in chain.blocks] == [block.raw for block in expected.blocks]
            assert chain.objects == expected.objects


@in_loop
async def test_our_client_pulls_from_the_peers_export_and_gives_it_back(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await make_workspace(tmp_path)
    for name in NAMES:
        await workspace.run("pull", f"file://{KAMU_DATA / name}/", "--as", name, "--no-alias")
        exported = tmp_path / "export" / name
        await workspace.run("push", name, "--to", f"file://{exported}/", "--no-alias")
        chain, speaks = await pull(f"file://{exported}", node)
        assert speaks is PeerSpeaks.FOLDER
        assert [block.raw for block in chain.blocks] == [block.raw for block in read_kamu_chain(name).blocks]
        node.keep(chain)
    other = Workspace(tmp_path / "other")
    await other.run("init")
    async with node.serving() as url:
        for name in NAMES:
            await other.run("pull", f"{url}/{name}", "--as", name, "--no-alias")
            assert "valid" in await other.run("verify", name)


@in_loop
async def test_peer_is_told_that_an_unpublished_dataset_is_not_there(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await make_workspace(tmp_path)
    node.keep(read_kamu_chain("countries.daily"), published=False)
    async with node.serving() as url:
        with pytest.raises(AssertionError, match=r"not found|Not found|does not exist"):
            await workspace.run("pull", f"{url}/countries.daily", "--as", "x", "--no-alias")
