"""Another ODF implementation reads the folders and buckets that we write, and we read its (LAYOUT-3)."""

import os
from pathlib import Path

import pytest

from conformance.test_exchange_with_kamu import pull
from odf_node.adapters.layout_places import find_layout_target
from odf_node.byte_rate import ByteRate
from odf_node.datasets.exporting import Exporting
from odf_node.ports.progress import Silence
from support.bucket_server import CREDENTIALS, bucket_server, make_bucket
from support.event_loop import in_loop
from support.exchange_nodes import TestNode, read_kamu_chain
from support.homes import make_home
from support.kamu_workspace import PeerWorkspace
from support.stores import find_named

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

NAME = "countries.daily"


async def export(node: TestNode, address: str) -> None:
    record = find_named(node.store, NAME)
    target = find_layout_target(address, NAME)
    assert record is not None
    assert target is not None
    exporting = Exporting(make_home(node.home, node.store), ByteRate())
    await exporting.export(record, target, Silence())


@in_loop
async def test_peer_pulls_the_folder_that_we_export(tmp_path: Path) -> None:
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    node.keep(read_kamu_chain(NAME))
    await export(node, str(tmp_path / "exported" / NAME))
    await workspace.run("pull", f"file://{tmp_path}/exported/{NAME}/", "--as", NAME, "--no-alias")
    assert "1 dataset(s) are valid" in await workspace.run("verify", NAME)


@in_loop
async def test_buckets_are_read_and_written_in_both_directions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    node, workspace = TestNode.create(tmp_path / "home"), await PeerWorkspace.create(tmp_path / "workspace")
    expected = read_kamu_chain(NAME)
    node.keep(expected)
    with bucket_server(tmp_path / "server.log") as endpoint:
        make_bucket(endpoint, "exchange")
        await export(node, f"s3+http://{endpoint}/exchange/ours/{NAME}")
        await workspace.run("pull", f"s3+http://{endpoint}/exchange/ours/{NAME}/", "--as", NAME, "--no-alias")
        assert "1 dataset(s) are valid" in await workspace.run("verify", NAME)

        await workspace.run("push", NAME, "--to", f"s3+http://{endpoint}/exchange/theirs/{NAME}/", "--no-alias")
        chain, _ = await pull(f"s3+http://{endpoint}/exchange/theirs/{NAME}", TestNode.create(tmp_path / "other"))
    assert [block.raw for block in chain.blocks] == [block.raw for block in expected.blocks]
    assert chain.objects == expected.objects
