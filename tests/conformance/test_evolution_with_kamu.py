"""What the other implementation makes of a chain whose schema got a column (SCHEMA-5)."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from support.kamu_workspace import PeerWorkspace
from support.nodes import RealNode

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="needs the other implementation"),
    pytest.mark.usefixtures("light_engines"),
]

MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: sales
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: NdJson, ddlSchema: [id INT, {more}name STRING]}}
      merge: {{kind: Snapshot, primaryKey: [id]}}
"""


async def tail_at_peer(folder: Path, address: str) -> list[dict]:
    peer = await PeerWorkspace.create(folder)
    await peer.run("pull", address, "--as", "copy", "--no-alias")
    await peer.run("verify", "copy")
    return [json.loads(line) for line in (await peer.run("tail", "copy", "-o", "ndjson")).splitlines()]


def test_peer_reads_the_same_rows_of_an_evolved_chain_schema_5(tmp_path: Path) -> None:
    node, path, rows = RealNode(tmp_path / "home"), tmp_path / "sales.yaml", tmp_path / "rows.ndjson"
    for more, name in (("", "a"), ("extra STRING, ", "b")):
        path.write_text(MANIFEST.format(more=more))
        node.must("add", "--replace", "--evolve", str(path))
        rows.write_text(json.dumps({"id": 1, "name": name} | ({"extra": "x"} if more else {})) + "\n")
        node.must("ingest", "sales", str(rows))
    node.must("export", "sales", "--to", str(tmp_path / "exported"))
    found = asyncio.run(tail_at_peer(tmp_path / "peer", f"file://{tmp_path}/exported/sales"))
    assert [(row["op"], row["name"], row["extra"]) for row in found] == [(0, "a", None), (2, "a", None), (3, "b", "x")]
    ours = node.must("tail", "sales", "-o", "json").json()
    assert [set(row) for row in found] == [set(row) for row in ours]
