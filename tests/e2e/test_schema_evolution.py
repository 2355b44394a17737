"""An optional column comes to a dataset with rows: everything goes on, and every reader gives all rows in it.

Clauses: SCHEMA-5 in ``spec/manifests.md``, ING-20 in ``spec/ingest.md``, QUERY-16 in ``spec/query.md``. What starts no
Spark: every merge strategy, and a dataset beside damaged ones; engines and other nodes: ``test_evolving_datasets.py``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import odf_node
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: NdJson, ddlSchema: [{columns}]}}
      merge: {merge}
"""
SCHEMA_ALONE = """kind: MetadataEvent
version: 1
content:
  kind: SetDataSchema
  schema:
    fields:
      - {name: offset, type: Int64}
      - {name: op, type: Int32}
      - {name: system_time, type: {kind: Timestamp, unit: Millisecond, timezone: UTC}}
      - {name: event_time, type: {kind: Timestamp, unit: Millisecond, timezone: UTC}}
      - {name: id, type: {kind: Option, inner: Int32}}
      - {name: name, type: {kind: Option, inner: String}}
      - {name: extra, type: {kind: Option, inner: String}}
"""
OLD, NEW = "id INT, name STRING", "id INT, extra STRING, name STRING"
KEYED = "{{kind: {}, primaryKey: [id]}}"
MERGES = {
    "append": "{kind: Append}",
    "ledger": KEYED.format("Ledger"),
    "snapshot": KEYED.format("Snapshot"),
    "upsert": KEYED.format("UpsertStream"),
    "changelog": KEYED.format("ChangelogStream"),
}


def write(folder: Path, text: str) -> str:
    path = folder / "manifest.yaml"
    path.write_text(text)
    return str(path)


def manifest(folder: Path, merge: str, columns: str, name: str = "sales") -> str:
    columns = f"op INT, {columns}" if merge == "changelog" else columns
    listed = ", ".join(f'"{each}"' for each in columns.split(", "))
    return write(folder, MANIFEST.format(name=name, columns=listed, merge=MERGES[merge]))


def ingest(node: RealNode, folder: Path, merge: str, *rows: dict[str, Any], name: str = "sales") -> dict[str, Any]:
    path = folder / "rows.ndjson"
    with_op = [{"op": 0} | row if merge == "changelog" else row for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in with_op))
    found: dict[str, Any] = node.must("ingest", name, str(path), "-o", "json").json()
    return found


def state(node: RealNode, name: str = "sales") -> list[tuple[Any, ...]]:
    query = f"SELECT id, name, extra FROM {name}__state ORDER BY id, extra NULLS FIRST"
    return [tuple(row.values()) for row in node.must("sql", "-c", query, "-o", "json").json()]


def evolved(folder: Path, merge: str) -> RealNode:
    node = RealNode(folder / "home")
    node.must("add", manifest(folder, merge, OLD))
    ingest(node, folder, merge, {"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    changed = node.must("add", "--replace", "--evolve", manifest(folder, merge, NEW))
    assert "extra (Option<String>)" in changed.err
    return node


EXPECTED = {
    "append": [(1, "a", None), (1, "a", None), (2, "b", None), (2, "b", "x"), (3, "c", "y")],
    "ledger": [(1, "a", None), (2, "b", None), (3, "c", "y")],
    "snapshot": [(1, "a", None), (2, "b", "x"), (3, "c", "y")],
    "upsert": [(1, "a", None), (2, "b", "x"), (3, "c", "y")],
    "changelog": [(1, "a", None), (1, "a", None), (2, "b", None), (2, "b", "x"), (3, "c", "y")],
}


@pytest.mark.parametrize("merge", MERGES)
def test_dataset_that_got_a_column_goes_on_and_is_read_whole_schema_5(merge: str, tmp_path: Path) -> None:
    node = evolved(tmp_path, merge)
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b", "extra": "x"}, {"id": 3, "name": "c", "extra": "y"}]
    ingest(node, tmp_path, merge, *rows)
    assert sorted(state(node), key=str) == sorted(EXPECTED[merge], key=str)
    ingest(node, tmp_path, merge, {"id": 3, "name": "c", "extra": "z"})  # from the new state, too
    shown = node.must("tail", "sales", "-n", "100", "-o", "json").json()
    assert all(list(row)[4:] == ["id", "extra", "name"] for row in shown)
    asked = node.must("sql", "-c", "SELECT * FROM sales ORDER BY offset", "-o", "json").json()
    assert [(row["offset"], row["extra"]) for row in asked] == [(row["offset"], row["extra"]) for row in shown]
    assert [row["extra"] for row in shown[:2]] == [None, None]
    assert "valid" in node.must("verify", "sales").out
    with odf_node.open(node.home) as opened:
        table = opened.table("sales").to_arrow()
        assert table.column_names[4:] == ["id", "extra", "name"]
        assert table.column("extra").to_pylist() == [row["extra"] for row in shown]


@pytest.mark.parametrize("merge", ["snapshot", "upsert"])
def test_row_whose_new_column_is_null_is_unchanged_schema_5(merge: str, tmp_path: Path) -> None:
    node = evolved(tmp_path, merge)
    found = ingest(node, tmp_path, merge, {"id": 1, "name": "a", "extra": None}, {"id": 2, "name": "b"})
    assert not node.must("tail", "sales", "-s", "2", "-o", "json").json(), found
    ingest(node, tmp_path, merge, {"id": 1, "name": "a", "extra": "new"}, {"id": 2, "name": "b"})
    shown = node.must("tail", "sales", "-n", "2", "-o", "json").json()
    assert [(row["op"], row["id"], row["extra"]) for row in shown] == [(2, 1, None), (3, 1, "new")]


def test_schema_that_a_source_does_not_follow_is_rejected_before_an_ingest_ing_20(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path, "snapshot", OLD))
    ingest(node, tmp_path, "snapshot", {"id": 1, "name": "a"})
    before = node.snapshot()
    refused = node.run("change", "sales", write(tmp_path, SCHEMA_ALONE))
    assert refused.code
    assert "missing: extra" in refused.err
    assert node.snapshot() == before


def test_damaged_dataset_fails_no_query_that_does_not_name_it_query_16(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    for name in ("sales", "s", "name"):  # a letter of every query, and a column of the healthy one
        node.must("add", manifest(tmp_path, "append", OLD, name))
        ingest(node, tmp_path, "append", {"id": 1, "name": name}, name=name)
    with odf_node.open(node.home) as opened:
        broken = [path for name in ("s", "name") for path in opened.table(name).files()]
    for path in broken:
        path.chmod(0o600)
        path.write_bytes(b"PAR1" + bytes(path.stat().st_size - 8) + b"PAR1")
    for query in ("SELECT name FROM sales", "SELECT name FROM sales__state", 'SELECT s.name FROM "sales" AS s'):
        assert node.must("sql", "-c", query, "-o", "json").json() == [{"name": "sales"}]
    assert node.run("sql", "-c", "SELECT id FROM s").code
    assert node.run("sql", "-c", "SELECT id FROM name").code
