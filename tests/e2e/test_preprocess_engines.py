"""Clauses ING-7 and FUSION-11: a preprocess step runs on the engine that it names, between reading and merging."""

from pathlib import Path

import pytest

from support.nodes import RealNode

pytestmark = pytest.mark.spark

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: sales
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: [day DATE, city STRING, sold INT]}
      preprocess: {kind: Sql, engine: ENGINE, query: "QUERY"}
      merge: MERGE
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items: []
"""
CSV = """day,city,sold
2024-01-02,Oslo,5
2024-01-01,Rome,7
2024-01-03,Oslo,2
"""
TOTALS = "SELECT max(day) AS event_time, city, sum(sold) AS sold FROM input GROUP BY city ORDER BY city"
HALF = "SELECT day AS event_time, city, sold / 2 AS half FROM input"


def manifest_of(query: str, *, engine: str = "DataFusion", merge: str = "{kind: Append}") -> str:
    return MANIFEST.replace("ENGINE", engine).replace("QUERY", query).replace("MERGE", merge)


def new_node(folder: Path, query: str, *, merge: str = "{kind: Append}") -> RealNode:
    node, manifest = RealNode(folder / "home", has_engine=True), folder / "sales.yaml"
    manifest.write_text(manifest_of(query, merge=merge))
    node.must("add", str(manifest))
    return node


def ingest(node: RealNode, text: str) -> dict[str, object]:
    source = node.home.with_name("sales.csv")
    source.write_text(text)
    (report,) = node.must("ingest", "sales", str(source), "-o", "json").json()
    return report


def rows(node: RealNode) -> list[list[str]]:
    lines = node.must("sql", "--engine", "datafusion", "-o", "csv", "-c", "SELECT * FROM sales ORDER BY offset").out
    return [line.replace('"', "").split(",") for line in lines.splitlines()]


def test_query_runs_on_the_engine_that_it_names(tmp_path: Path) -> None:
    """Half of 5 is 2 there, and 2.5 in Spark."""
    node = new_node(tmp_path, HALF)
    ingest(node, CSV)
    assert [row[-2:] for row in rows(node)] == [["city", "half"], ["Rome", "3"], ["Oslo", "2"], ["Oslo", "1"]]


def test_records_that_are_not_read_wait_beside_rows_of_the_query_that_are_rejected(
    tmp_path: Path,
) -> None:
    timeless = HALF.replace("day AS", "nullif(day, date '2024-01-03') AS")
    node = new_node(tmp_path, timeless, merge="{kind: Snapshot, primaryKey: [event_time]}")
    report = ingest(node, CSV + "nonsense,Turin,1\n")
    assert (report["newRows"], report["quarantinedRows"]) == (2, 2)
    unread, refused = node.must("quarantine", "show", "sales", "-o", "json").json()
    assert (unread["record"], unread["stage"], unread["errors"][0]["column"]) == (4, "convert", "day")
    assert (refused["record"], refused["stage"], refused["errors"][0]["code"]) == (None, "merge", "null-key")
    assert unread["original"] == "nonsense,Turin,1"


def test_later_ingest_meets_the_state_that_the_first_left(tmp_path: Path) -> None:
    node = new_node(tmp_path, TOTALS, merge="{kind: Snapshot, primaryKey: [city]}")
    ingest(node, CSV)
    report = ingest(node, CSV + "2024-01-04,Rome,1\n")
    assert report["newRows"] == 2
    assert [row[1] for row in rows(node)[1:]] == ["0", "0", "2", "3"]


WRONG = {
    "SELECT day FROM elsewhere": "elsewhere",
    "SELECT CAST(city AS INT) AS n FROM input": "Oslo",
    "COPY input TO '/tmp/x.csv'": "not supported",
    "SELECT NULL AS x, city FROM input": "has no type: cast its NULL",
    "SELECT city, city FROM input": "city",
    "SELECT city AS offset FROM input": "reserved for a system column",
    "SELECT sold, 1 AS event_time FROM input": "expected a date or a timestamp",
    "SELECT * FROM '/etc/passwd'": "/etc/passwd",
    "SELECT to_timestamp_millis(sold * 1000000000000000) AS event_time FROM input": "row 1 of the result",
}


def test_queries_that_are_none_or_fail_are_rejected_and_change_nothing(tmp_path: Path) -> None:
    node, manifests = RealNode(tmp_path / "home", has_engine=True), []
    for number, query in enumerate(WRONG):
        manifests.append(tmp_path / f"{number}.yaml")
        manifests[-1].write_text(manifest_of(query).replace("name: sales", f"name: sales{number}"))
    node.must("add", *map(str, manifests))
    before, source = node.must("list", "-o", "json").json(), tmp_path / "sales.csv"
    objects = {name for name in node.snapshot() if name.startswith("objects/")}
    source.write_text(CSV)
    for number, stated in enumerate(WRONG.values()):
        refused = node.run("ingest", f"sales{number}", str(source))
        assert (refused.code, stated in refused.err) == (7, True), refused.err
    assert node.must("list", "-o", "json").json() == before
    assert {name for name in node.snapshot() if name.startswith("objects/")} == objects


@pytest.mark.parametrize("engine", ["flink", "RisingWave"])
def test_step_for_an_engine_that_is_not_here_is_rejected_and_can_be_translated(tmp_path: Path, engine: str) -> None:
    node, manifest = RealNode(tmp_path / "home", has_engine=True), tmp_path / "sales.yaml"
    manifest.write_text(manifest_of(HALF, engine=engine))
    refused = node.run("add", str(manifest))
    assert refused.code == 7
    assert (
        "expected an engine that is here (datafusion, spark), and a query in its dialect; add --as-spark" in refused.err
    )
    assert node.must("list", "-o", "json").json() == []
    node.must("add", "--as-spark", str(manifest))
    ingest(node, CSV)
    assert len(rows(node)) == 4
