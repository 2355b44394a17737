"""Datasets of this node as sources of roots (clause ING-43)."""

import json
from pathlib import Path

import pytest

from support.command_line import list_kept
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

PUSHED = """
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, city STRING, n BIGINT]}
      merge: {MERGE}
"""
FOLLOWER = """
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "dataset:OTHER"}
      read: {kind: Parquet}
      merge: {MERGE}
"""
FIRST = "event_time,city,n\n2024-01-01T00:00:00Z,Bern,1\n2024-01-02T00:00:00Z,Rome,2\n"
SECOND = "event_time,city,n\n2024-01-03T00:00:00Z,Oslo,3\n"


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "home")


def write(node: RealNode, text: str, name: str, other: str = "", merge: str = "kind: Append") -> str:
    path = node.home.with_name(f"{name}.yaml")
    path.write_text(text.replace("NAME", name).replace("OTHER", other).replace("MERGE", merge))
    return str(path)


def ingest(node: RealNode, name: str, rows: str) -> None:
    ran = node.run("ingest", name, "--stdin", standard_input=rows)
    assert ran.code == 0, ran.err


def rows(node: RealNode, name: str) -> list[tuple[int, str, int]]:
    lines = node.must("tail", name, "-n", "100", "-o", "ndjson").out.splitlines()
    return [(row["op"], row["city"], row["n"]) for row in map(json.loads, lines)]


def test_each_new_row_is_taken_once(node: RealNode) -> None:
    node.must("add", write(node, PUSHED, "cities"))
    node.must("add", write(node, FOLLOWER, "copy", "cities"))
    assert "up to date" in node.must("pull", "copy").out
    ingest(node, "cities", FIRST)
    assert "2 rows" in node.must("pull", "copy").out
    before = node.must("log", "copy", "-o", "yaml").out
    assert "odf-node/dataset-cursor" in before
    assert "dataset:cities" in before
    assert "up to date" in node.must("pull", "copy").out
    assert node.must("log", "copy", "-o", "yaml").out == before
    ingest(node, "cities", SECOND)
    node.must("pull", "copy")
    assert rows(node, "copy") == [(0, "Bern", 1), (0, "Rome", 2), (0, "Oslo", 3)]


def test_corrections_are_followed_as_operations_and_never_appended(node: RealNode) -> None:
    node.must("add", write(node, PUSHED, "cities", merge="kind: Snapshot, primaryKey: [city]"))
    node.must("add", write(node, FOLLOWER, "copy", "cities"))
    changelog = "kind: ChangelogStream, primaryKey: [city]"
    node.must("add", write(node, FOLLOWER, "changes", "cities?op=true", changelog))
    ingest(node, "cities", FIRST)
    node.must("pull", "copy", "changes")
    ingest(node, "cities", SECOND)  # the others are gone from the snapshot
    before = node.must("log", "copy").out
    refused = node.run("pull", "copy")
    assert (refused.code, "no-lost-corrections" in refused.err) == (4, True)
    assert node.must("log", "copy").out == before
    node.must("pull", "changes")
    assert sorted(rows(node, "changes")) == sorted(rows(node, "cities"))
    assert {op for op, *_ in rows(node, "changes")} == {0, 1}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("nothing", "a dataset of this node"),
        ("copy", "itself"),
        ("COPY", "itself"),
        ("cities?op=1", "dataset:NAME"),
        ("cities#x", "dataset:NAME"),
        ("//host/cities", "dataset:NAME"),
        ("", "dataset:NAME"),
    ],
)
def test_dataset_that_cannot_be_followed_is_rejected_by_add(node: RealNode, other: str, says: str) -> None:
    node.must("add", write(node, PUSHED, "cities"))
    before = node.must("list").out
    ran = node.run("add", write(node, FOLLOWER, "copy", other))
    assert (ran.code, says in ran.err) == (7, True), ran.err
    assert node.must("list").out == before


def test_circle_is_rejected_by_change_and_by_a_pull(node: RealNode) -> None:
    node.must("add", write(node, PUSHED, "cities"))
    node.must("add", write(node, FOLLOWER, "copy", "cities"))
    node.must("add", write(node, FOLLOWER, "copy.two", "copy"))
    before = node.must("log", "copy").out
    ran = node.run("change", "copy", write(node, FOLLOWER, "copy", "copy.two"))
    assert ran.code != 0
    assert "which rests on 'copy'" in ran.err
    assert node.must("log", "copy").out == before
    # By a name that another dataset has now.
    node.must("rename", "cities", "cities.old")
    node.must("rename", "copy.two", "cities")
    ran = node.run("pull", "copy")
    assert (ran.code, "no-circles" in ran.err) == (4, True), ran.err
    assert node.must("log", "copy").out == before


def test_another_dataset_of_the_same_name_is_followed_from_its_beginning_if_its_columns_fit(node: RealNode) -> None:
    follower = write(node, FOLLOWER, "copy", "cities")
    node.must("add", write(node, PUSHED, "cities"))
    node.must("add", follower)
    ingest(node, "cities", FIRST)
    node.must("pull", "copy")
    node.must("rename", "cities", "first")
    reject(node, 3, "no dataset 'cities'")
    odd = PUSHED.replace("city STRING, n BIGINT", "n STRING, town STRING")
    node.must("add", write(node, odd, "cities"))
    ingest(node, "cities", "event_time,n,town\n2024-01-04T00:00:00Z,x,Kyiv\n")
    reject(node, 7, "town")
    node.must("delete", "cities", "--yes")
    node.must("add", write(node, PUSHED, "cities"))
    ingest(node, "cities", SECOND)
    node.must("pull", "copy")
    assert rows(node, "copy") == [(0, "Bern", 1), (0, "Rome", 2), (0, "Oslo", 3)]
    assert "up to date" in node.must("pull", "copy").out


def reject(node: RealNode, code: int, stated: str) -> None:
    """Pull the follower in vain, twice, and see that nothing of the home has changed."""
    before = list_kept(node.home)
    for _ in range(2):
        ran = node.run("pull", "copy")
        assert (ran.code, stated in ran.err) == (code, True), ran
    assert list_kept(node.home) == before
