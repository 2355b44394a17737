"""Another ODF implementation takes what we write in either version of the block format (WIRE-3, WIRE-14)."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from odf_node.adapters.key_files import KeyFiles
from odf_node.datasets.creation import DatasetCreator
from odf_node.datasets.writer import ChainWriter
from odf_protocol.block import decode_block
from odf_protocol.events import DatasetKind, SetInfo
from odf_protocol.manifest import DatasetSnapshot
from support.chains import NOON, push_source, schema
from support.event_loop import in_loop
from support.exchange_nodes import TestNode
from support.homes import make_home

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]


@pytest.mark.parametrize("version", [2, 3])
@in_loop
async def test_peer_pulls_and_verifies_a_chain_of_ours(tmp_path: Path, version: int) -> None:
    node = TestNode.create(tmp_path / "home")
    keys = KeyFiles(node.home)
    snapshot = DatasetSnapshot(
        name="of.ours",
        kind=DatasetKind.ROOT,
        metadata=(SetInfo(description="ours", keywords=("a",)), push_source(), schema()),
    )
    record = DatasetCreator(make_home(node.home, node.store)).create(snapshot, system_time=NOON, block_version=version)
    writer = ChainWriter.continue_chain(node.store, keys, record.id)
    writer.add(SetInfo(description="ours, later", keywords=()), system_time=NOON)
    writer.commit(signed_at=NOON, objects=node.objects, staged={})
    node.store.set_published(record.id, True)
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def kamu(*words: str) -> str:
        command = [Path(os.environ["ODF_PEER"], "kamu"), "-q", *words]
        ran = subprocess.run(command, cwd=workspace, capture_output=True, text=True, timeout=400)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    kamu("init")
    async with node.serving() as url:
        await asyncio.to_thread(kamu, "pull", f"{url}/of.ours", "--as", "copy", "--no-alias")
    assert "1 dataset(s) are valid" in kamu("verify", "copy")
    log = kamu("log", "copy", "--output-format", "yaml")
    blocks = [decode_block(block.raw, expected_hash=block.hash) for block in node.store.iter_blocks(record.id)]
    assert [block.version for block in blocks] == [version] * 5
    assert all(str(block.hash) in log for block in blocks)
