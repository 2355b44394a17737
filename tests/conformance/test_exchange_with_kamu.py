"""Another ODF implementation pulls from our server, our client from its server and folders (EX-1, EX-4, EX-15)."""

import json
import os
from pathlib import Path

import pytest

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_peer
from odf_node.ports.peer_client import PeerSpeaks
from odf_protocol.block import decode_block
from odf_protocol.exchange.block_outlines import iter_wanted
from support.event_loop import in_loop
from support.exchange_nodes import KAMU_DATA, Chain, TestNode, read_kamu_chain
from support.kamu_workspace import PeerError, PeerWorkspace

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

# Three ways to merge; from a few hundred bytes to some megabytes.
NAMES = ["countries.daily", "ledger.transactions", "upsert.accounts"]


async def count_rows(workspace: PeerWorkspace, name: str) -> int:
    rows = await workspace.run("sql", "--command", f'select count(*) as n from "{name}"', "-o", "ndjson")
    return int(json.loads(rows)["n"])


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
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    async with node.serving() as url:
        for name in NAMES:
            node.keep(read_kamu_chain(name))
            await workspace.run("pull", f"{url}/{name}", "--as", name, "--no-alias")
            assert "1 dataset(s) are valid" in await workspace.run("verify", name)
    assert await count_rows(workspace, "countries.daily") == 55_534


@in_loop
async def test_peer_pulls_what_was_added_since(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
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
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    for name in NAMES:
        await workspace.run("pull", f"file://{KAMU_DATA / name}/", "--as", name, "--no-alias")
    async with workspace.serving() as server:
        for name in NAMES:
            chain, speaks = await pull(f"{server.url}/{name}", node)
            expected = read_kamu_chain(name)
            assert speaks is PeerSpeaks.SIMPLE
            assert [block.raw for block in chain.blocks] == [block.raw for block in expected.blocks]
            assert chain.objects == expected.objects


@in_loop
async def test_our_client_pulls_from_the_peers_export_and_gives_it_back(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    for name in NAMES:
        await workspace.run("pull", f"file://{KAMU_DATA / name}/", "--as", name, "--no-alias")
        exported = tmp_path / "export" / name
        await workspace.run("push", name, "--to", f"file://{exported}/", "--no-alias")
        chain, speaks = await pull(f"file://{exported}", node)
        assert speaks is PeerSpeaks.FOLDER
        assert [block.raw for block in chain.blocks] == [block.raw for block in read_kamu_chain(name).blocks]
        node.keep(chain)
    other = await PeerWorkspace.create(tmp_path / "other")
    async with node.serving() as url:
        for name in NAMES:
            await other.run("pull", f"{url}/{name}", "--as", name, "--no-alias")
            assert "valid" in await other.run("verify", name)


@in_loop
async def test_peer_is_told_that_an_unpublished_dataset_is_not_there(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    node.keep(read_kamu_chain("countries.daily"), published=False)
    async with node.serving() as url:
        with pytest.raises(PeerError, match=r"not found|Not found|does not exist"):
            await workspace.run("pull", f"{url}/countries.daily", "--as", "x", "--no-alias")
