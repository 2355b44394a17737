"""Clause FUSION-14: derivatives of DataFusion go on, whatever each of their steps finds to read."""

from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

from support.city_datasets import root_manifest
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

DERIVATIVE: Final = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: cities, alias: c}}, {{datasetRef: towns, alias: t}}]
      transform: {{kind: Sql, engine: datafusion, query: '{query}'}}
"""
QUERIES: Final = {
    "both": "SELECT coalesce(c.event_time, t.event_time) AS event_time, c.city, t.city AS town "
    "FROM c FULL JOIN t ON c.city = t.city",
    "latest": "SELECT max(event_time) AS event_time, city FROM c GROUP BY city",
    "counted": "SELECT c.event_time, c.city, (SELECT count(*) FROM t) AS towns FROM c",
    "filtered": "SELECT event_time, city FROM c WHERE city NOT IN (SELECT city FROM t)",
}


def make_node(folder: Path) -> RealNode:
    node = RealNode(folder / "home")
    for name in ("cities", "towns"):
        (folder / f"{name}.yaml").write_text(root_manifest(name))
        node.must("add", str(folder / f"{name}.yaml"))
    return node


def ingest(node: RealNode, folder: Path, dataset: str, *cities: str) -> None:
    rows = "".join(f'{{"event_time": "2024-01-01T00:00:00Z", "city": "{city}", "people": 1}}\n' for city in cities)
    (folder / "rows.ndjson").write_text(rows)
    node.must("ingest", dataset, str(folder / "rows.ndjson"))


@pytest.mark.parametrize("is_full_at_first", [True, False], ids=["rows-of-both-first", "rows-of-one-first"])
def test_steps_over_one_input_or_both_have_one_schema(tmp_path: Path, *, is_full_at_first: bool) -> None:
    node = make_node(tmp_path)
    ingest(node, tmp_path, "cities", "Oslo", "Rome")
    # No row, but columns: as of a dataset whose first file was empty.
    ingest(node, tmp_path, "towns", *(["Rome"] if is_full_at_first else []))
    for name, query in QUERIES.items():
        (tmp_path / "derivative.yaml").write_text(DERIVATIVE.format(name=name, query=query))
        node.must("add", str(tmp_path / "derivative.yaml"))
        node.must("pull", name)
    ingest(node, tmp_path, "cities", "Turin")
    node.must("pull", *QUERIES)
    ingest(node, tmp_path, "towns", "Bonn")
    node.must("pull", *QUERIES)
    ingest(node, tmp_path, "cities", "Bonn", "Brno")
    ingest(node, tmp_path, "towns", "Brno", "Ulm")
    node.must("pull", *QUERIES)
    shown = node.must("tail", "both", "-n", "100", "-o", "json").json()
    assert [(row["city"], row["town"]) for row in shown[-5:-3]] == [("Turin", None), (None, "Bonn")]
    assert {(row["city"], row["town"]) for row in shown[-3:]} == {("Bonn", None), ("Brno", "Brno"), (None, "Ulm")}

    node.must("export", "cities", "towns", *QUERIES, "--to", str(tmp_path / "exported"))
    other = RealNode(tmp_path / "other")
    for name in ("cities", "towns", *QUERIES):
        (report,) = other.must("pull", (tmp_path / "exported" / name).as_uri(), "-o", "json").json()
        assert name in ("cities", "towns") or report["replayedSteps"] > 1, name
    for name in QUERIES:
        files = [each for each in (tmp_path / "exported" / name).rglob("*") if each.is_file() and is_parquet(each)]
        schemas = {str(pq.read_schema(each).remove_metadata()) for each in files}
        assert len(schemas) == 1, name


def test_mistake_in_a_first_query_is_changed_before_its_first_step(tmp_path: Path) -> None:
    """VIEW-11, ING-20: whatever the class of the query, and whatever columns it gives."""
    node = make_node(tmp_path)
    ingest(node, tmp_path, "cities", "Oslo", "Rome", "Rome")
    single = DERIVATIVE.replace(", {{datasetRef: towns, alias: t}}", "")
    manifest = tmp_path / "derivative.yaml"
    for command, query in (
        ("add", "SELECT max(event_time) AS event_time, city FROM c GROUP BY city"),
        ("change", "SELECT max(event_time) AS event_time, city, 2 * count(*) AS n FROM c GROUP BY city"),
        ("change", "SELECT max(event_time) AS event_time, city, count(*) AS n FROM c GROUP BY city"),
    ):
        manifest.write_text(single.format(name="counted", query=query))
        node.must(command, *(["counted"] if command == "change" else []), str(manifest))
    node.must("pull", "counted")
    ingest(node, tmp_path, "cities", "Oslo")
    node.must("pull", "counted")
    asked = node.must("sql", "-c", "SELECT city, n FROM counted ORDER BY city", "-o", "json").json()
    assert [(row["city"], row["n"]) for row in asked] == [("Oslo", 1), ("Oslo", 1), ("Rome", 2)]

    manifest.write_text(single.format(name="counted", query="SELECT event_time, city, 1 AS n FROM c"))
    refused = node.run("change", "counted", str(manifest))
    assert (refused.code, "has made rows already" in refused.err) == (2, True)
    node.must("export", "cities", "counted", "--to", str(tmp_path / "exported"))
    other = RealNode(tmp_path / "other")
    for name in ("cities", "counted"):
        (report,) = other.must("pull", (tmp_path / "exported" / name).as_uri(), "-o", "json").json()
    assert report["replayedSteps"] == 2


def is_parquet(path: Path) -> bool:
    return path.read_bytes()[:4] == b"PAR1"


def test_group_without_an_event_time_names_what_would_give_it_one(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    ingest(node, tmp_path, "cities", "Oslo")
    ingest(node, tmp_path, "towns", "Rome")
    query = "SELECT max(t.event_time) AS event_time, c.city FROM c LEFT JOIN t ON t.city = c.city GROUP BY c.city"
    (tmp_path / "derivative.yaml").write_text(DERIVATIVE.format(name="latest", query=query))
    node.must("add", str(tmp_path / "derivative.yaml"))
    before = node.snapshot()
    ran = node.run("pull", "latest")
    assert ran.code
    assert "coalesce(max(event_time), TIMESTAMP '1970-01-01 00:00:00')" in ran.err
    assert node.must("list", "-o", "json").json() is not None
    assert before.keys() <= node.snapshot().keys()
