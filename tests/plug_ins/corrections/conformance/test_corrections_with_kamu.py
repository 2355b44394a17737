"""A correction by hand is a chain that another implementation pulls and verifies (ING-28)."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from support.kamu_workspace import PeerWorkspace
from support.nodes import make_publisher

pytestmark = [
    pytest.mark.peer,
    pytest.mark.spark,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]


def test_peer_pulls_and_verifies_a_corrected_dataset(tmp_path: Path) -> None:
    node = make_publisher(tmp_path, has_engine=True).node
    reason = ("--reason", "the census was published again", "--yes")
    node.must("correct", "cities", "--retract", "--where", "city = 'Vaduz'", *reason)
    node.must("correct", "cities", "--set", "people=people+1", "--where", "city = 'Oslo'", *reason)
    rows = _sorted(node.must("tail", "cities", "-n", "100", "-o", "ndjson").out)
    with node.serving() as url:
        theirs, log = asyncio.run(_pull(tmp_path / "peer", url))
    assert _sorted(theirs) == rows
    assert [row["op"] for row in rows[-3:]] == [1, 2, 3]
    assert "the census was published again" in log


async def _pull(folder: Path, url: str) -> tuple[str, str]:
    peer = await PeerWorkspace.create(folder)
    await peer.run("pull", f"{url}/cities", "--as", "copy", "--no-alias")
    await peer.run("verify", "copy")
    return await peer.run("tail", "copy", "-n", "100", "-o", "ndjson"), await peer.run("log", "copy")


def _sorted(lines: str) -> list[dict]:
    rows = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    return sorted(rows, key=lambda row: row["offset"])
