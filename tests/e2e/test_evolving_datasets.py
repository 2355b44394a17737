"""Datasets that gain optional columns go on everywhere: merges, queries, derivatives, files, other nodes (SCHEMA-5)."""

import json
from pathlib import Path

import pytest

import odf_node
from support.daemons import daemon
from support.nodes import RealNode

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("light_engines")]

MERGES = {
    "append": "{kind: Append}",
    "ledger": "{kind: Ledger, primaryKey: [id]}",
    "snapshot": "{kind: Snapshot, primaryKey: [id]}",
    "upsert": "{kind: UpsertStream, primaryKey: [id]}",
}
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [COLUMNS]}
      merge: MERGE
"""
BEFORE = "event_time TIMESTAMP, id INT, v STRING"
AFTER = "event_time TIMESTAMP, id INT, extra STRING, v STRING"
DAY = "2024-01-01T00:00:00Z"
OLD = [{"event_time": DAY, "id": 1, "v": "a"}, {"event_time": DAY, "id": 2, "v": "b"}]
NEW = [
    {"event_time": DAY, "id": 1, "v": "a"},
    {"event_time": DAY, "id": 2, "v": "b", "extra": "x"},
    {"event_time": DAY, "id": 3, "v": "c", "extra": "y"},
]
CHANGES = {  # of the second ingest: a row that is as it was but for a column that it lacks is unchanged
    "append": [(0, 1, None), (0, 2, "x"), (0, 3, "y")],
    "ledger": [(0, 3, "y")],
    "snapshot": [(0, 3, "y"), (2, 2, None), (3, 2, "x")],
    "upsert": [(0, 3, "y"), (2, 2, None), (3, 2, "x")],
}


def write(node: RealNode, name: str, columns: str, merge: str) -> str:
    path = node.home.parent / f"{name}.yaml"
    path.write_text(ROOT.replace("NAME", name).replace("COLUMNS", columns).replace("MERGE", merge))
    return str(path)


def ingest(node: RealNode, name: str, rows: list[dict]) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    ran = node.run("ingest", name, "--stdin", standard_input=lines)
    assert ran.code == 0, ran.err


def ask(node: RealNode, sql: str, engine: str = "datafusion") -> list[dict]:
    return json.loads(node.must("sql", "--engine", engine, "-c", sql, "-o", "json").out)


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "home")


@pytest.mark.parametrize("merge", MERGES)
def test_dataset_goes_on_with_a_new_column(node: RealNode, merge: str) -> None:
    node.must("add", write(node, "cities", BEFORE, MERGES[merge]))
    ingest(node, "cities", OLD)
    node.must("add", "--replace", "--evolve", write(node, "cities", AFTER, MERGES[merge]))
    columns = ["offset", "op", "system_time", "event_time", "id", "extra", "v"]
    # Before a row has it, behind one that has it, and each engine.
    for engine in ("datafusion", "spark"):
        found = ask(node, "SELECT * FROM cities ORDER BY offset", engine)
        assert [[*row] for row in found] == [columns] * 2
        assert [row["extra"] for row in found] == [None, None]
    ingest(node, "cities", NEW)
    for engine in ("datafusion", "spark"):
        found = ask(node, "SELECT * FROM cities ORDER BY offset", engine)[2:]
        assert {(row["op"], row["id"], row["extra"]) for row in found} == {*CHANGES[merge]}
        assert len(found) == len(CHANGES[merge])
        current = ask(node, "SELECT id, extra FROM cities__state ORDER BY id, extra", engine)
        assert {(row["id"], row["extra"]) for row in current} >= {(1, None), (3, "y")}
    assert "valid" in node.must("verify", "cities", "--all").out
    ingest(node, "cities", OLD[:1])
    assert "extra" in node.must("tail", "cities").out
    with odf_node.open(node.home) as opened:
        frame = opened.table("cities").to_arrow()
        assert frame.schema.names == columns
        assert frame.column("extra").null_count < frame.num_rows


def test_new_column_is_rejected_with_its_way_and_taken_with_it_in_one_commit(node: RealNode) -> None:
    """SCHEMA-5, ING-20"""
    node.must("add", write(node, "cities", BEFORE, MERGES["snapshot"]))
    ingest(node, "cities", OLD)
    before = node.must("log", "cities").out
    refused = node.run("add", "--replace", write(node, "cities", AFTER, MERGES["snapshot"]))
    assert (refused.code, "new: extra" in refused.err, "--evolve" in refused.err) == (2, True, True)
    assert node.must("log", "cities").out == before
    reported = node.must("add", "--replace", "--evolve", write(node, "cities", AFTER, MERGES["snapshot"]))
    assert "new columns, null in rows that are there: extra (Option<String>)" in reported.err
    assert "changed by 2 new blocks" in reported.out
    for columns in ("event_time TIMESTAMP, id INT", "event_time TIMESTAMP, id BIGINT, extra STRING, v STRING"):
        refused = node.run("change", "cities", write(node, "cities", columns, MERGES["snapshot"]), "--evolve")
        assert refused.code == 2, refused.out
        assert "cannot be changed this way" in refused.err


DERIVED = """\
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: cities, alias: cities}]
      transform: {kind: Sql, engine: ENGINE, query: "QUERY"}
"""
QUERIES = {
    "views.counted": ("spark", "SELECT event_time, v, count(*) AS n FROM cities GROUP BY event_time, v"),
    "views.mapped": ("spark", "SELECT op, event_time, id, upper(v) AS v FROM cities"),
    "views.plain": ("datafusion", "SELECT op, event_time, id, v FROM cities"),
}


def test_derivatives_go_on_and_are_re_executed_by_another_node(node: RealNode, tmp_path: Path) -> None:
    """A column that a query does not name changes nothing of it, before and after."""
    node.must("add", write(node, "cities", BEFORE, MERGES["snapshot"]))
    ingest(node, "cities", OLD)
    for name, (engine, query) in QUERIES.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(DERIVED.replace("NAME", name).replace("ENGINE", engine).replace("QUERY", query))
        node.must("add", str(path))
    node.must("pull", *QUERIES)
    node.must("add", "--replace", "--evolve", write(node, "cities", AFTER, MERGES["snapshot"]))
    ingest(node, "cities", NEW)
    node.must("pull", *QUERIES)
    ingest(node, "cities", NEW[:2])
    node.must("pull", *QUERIES)
    counted = ask(node, "SELECT v, n FROM views.counted__state ORDER BY v")
    assert counted == [{"v": "a", "n": 1}, {"v": "b", "n": 1}]
    with daemon(node.home) as serving:
        other = RealNode(tmp_path / "other")
        for name in ("cities", *QUERIES):
            other.must("pull", f"{serving.url}/{name}")
    assert ask(other, "SELECT v, n FROM views.counted__state ORDER BY v") == counted
    assert ask(other, "SELECT * FROM cities ORDER BY offset") == ask(node, "SELECT * FROM cities ORDER BY offset")
    for name in QUERIES:
        assert "re-executed with an equal result" in other.must("verify", name, "--all").out


PLACES = ROOT.replace("ddlSchema: [COLUMNS]", "schema: {fields: [COLUMNS]}")
MEMBERS = """
        {name: event_time, type: {kind: Timestamp, unit: Millisecond, timezone: UTC}},
        {name: id, type: {kind: Option, inner: Int32}},
        {name: at, type: {kind: Option, inner: {kind: Struct, fields: [FIELDS]}}}"""
MEMBER = "{name: NAME, type: {kind: Option, inner: Int32}}"


def test_struct_gains_a_member(node: RealNode) -> None:
    """SCHEMA-1: also inside structs and lists."""
    path = node.home.parent / "places.yaml"

    def declare(*names: str) -> str:
        members = MEMBERS.replace("FIELDS", ", ".join(MEMBER.replace("NAME", name) for name in names))
        text = PLACES.replace("NAME", "places").replace("COLUMNS", members).replace("MERGE", MERGES["append"])
        path.write_text(text)
        return str(path)

    node.must("add", declare("x"))
    ingest(node, "places", [{"event_time": DAY, "id": 1, "at": {"x": 1}}])
    node.must("add", "--replace", "--evolve", declare("x", "y"))
    ingest(node, "places", [{"event_time": DAY, "id": 2, "at": {"x": 2, "y": 3}}])
    for engine in ("datafusion", "spark"):
        found = ask(node, "SELECT id, at FROM places ORDER BY id", engine)
        assert found == [{"id": 1, "at": {"x": 1, "y": None}}, {"id": 2, "at": {"x": 2, "y": 3}}]
    assert "valid" in node.must("verify", "places", "--all").out
