"""What the other implementation makes of a chain whose schema got a column (SCHEMA-5)."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from support.kamu_workspace import PeerError, PeerWorkspace
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


SCHEMAS = """kind: DatasetSnapshot
version: 1
content:
  name: declared
  kind: Root
  metadata:
    - kind: SetDataSchema
      schema: {{fields: [{system}, {before}]}}
    - kind: SetDataSchema
      schema: {{fields: [{system}, {after}]}}
"""
SYSTEM = (
    "{name: offset, type: Int64}, {name: op, type: Int32}, "
    "{name: system_time, type: {kind: Timestamp, unit: Millisecond, timezone: UTC}}, "
    "{name: event_time, type: {kind: Timestamp, unit: Millisecond, timezone: UTC}}"
)
OPTIONAL = "{{name: {}, type: {{kind: Option, inner: {}}}}}"
REQUIRED = "{{name: {}, type: {}}}"
CHANGES = {
    "optional-column": (OPTIONAL.format("a", "Int32"), ", ".join([OPTIONAL.format(n, "Int32") for n in "ab"]), True),
    "widened-whole-number": (OPTIONAL.format("a", "Int32"), OPTIONAL.format("a", "Int64"), False),
    "widened-fraction": (OPTIONAL.format("a", "Float32"), OPTIONAL.format("a", "Float64"), False),
    "dropped-requirement": (REQUIRED.format("a", "Int32"), OPTIONAL.format("a", "Int32"), False),
    "new-requirement": (OPTIONAL.format("a", "Int32"), REQUIRED.format("a", "Int32"), False),
    "required-column": (
        OPTIONAL.format("a", "Int32"), f"{OPTIONAL.format('a', 'Int32')}, {REQUIRED.format('b', 'Int32')}", False
    ),
    "removed-column": (", ".join([OPTIONAL.format(n, "Int32") for n in "ab"]), OPTIONAL.format("a", "Int32"), False),
}  # fmt: skip
"""Columns before and after, and whether a chain may change so."""


async def find_rejection_of_peer(folder: Path, manifest: Path) -> str:
    peer = await PeerWorkspace.create(folder)
    try:
        await peer.run("add", str(manifest))
    except PeerError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("change", CHANGES)
def test_peer_and_this_node_allow_the_same_changes_of_a_schema_schema_2(change: str, tmp_path: Path) -> None:
    before, after, is_allowed = CHANGES[change]
    manifest = tmp_path / "declared.yaml"
    manifest.write_text(SCHEMAS.format(system=SYSTEM, before=before, after=after))
    ran = RealNode(tmp_path / "home").run("add", str(manifest))
    rejection = asyncio.run(find_rejection_of_peer(tmp_path / "peer", manifest))
    assert ("schema" in rejection.lower()) != is_allowed, rejection
    assert (ran.code == 0) == is_allowed, ran.err
    assert is_allowed or "CHAIN-47" in ran.err, ran.err
