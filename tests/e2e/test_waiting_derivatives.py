"""Clauses PLAN-20, VIEW-8, VIEW-14: what a derivative waits for is said, and comes where views follow their inputs."""

from pathlib import Path
from typing import Final

import pytest

from support.city_datasets import derivative_manifest, root_manifest
from support.nodes import RealNode

QUERIES: Final = {
    "began": ("cities", "SELECT min(event_time) AS event_time, city, count(*) AS n FROM c GROUP BY city"),
    "latest": ("cities", "SELECT max(event_time) AS event_time, city, count(*) AS n FROM c GROUP BY city"),
    "days.began": (
        "began",
        "SELECT window.end AS event_time, count(*) AS n FROM c GROUP BY window(event_time, '1 day')",
    ),
    "days.latest": (
        "latest",
        "SELECT window.end AS event_time, count(*) AS n FROM c GROUP BY window(event_time, '1 day')",
    ),
    "pairs": (
        "cities",
        "SELECT c.event_time, c.city, d.people FROM c LEFT JOIN c d ON d.city = c.city AND d.people > 1",
    ),
}


def add(node: RealNode, folder: Path, name: str) -> str:
    source, query = QUERIES[name]
    path = folder / f"{name}.yaml"
    quoted = query.replace("'", "''")
    path.write_text(derivative_manifest(name, f"{{kind: Sql, engine: spark, query: '{quoted}'}}", source=source))
    return node.must("add", str(path)).err


def ingest(node: RealNode, folder: Path, *days: int) -> None:
    rows = "".join(f'{{"event_time": "2024-01-{day:02}T06:00:00Z", "city": "c{day}", "people": 1}}\n' for day in days)
    (folder / "rows.ndjson").write_text(rows)
    node.must("ingest", "cities", str(folder / "rows.ndjson"))


def test_list_names_what_a_derivative_without_rows_waits_for(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    (tmp_path / "root.yaml").write_text(root_manifest("latest"))
    node.must("add", str(tmp_path / "root.yaml"))
    add(node, tmp_path, "days.latest")
    waiting = {each["name"]: each["waitsFor"] for each in node.must("list", "-o", "json").json()}
    assert waiting == {"latest": [], "days.latest": ["latest"]}
    assert "WAITS FOR A WATERMARK OF" in node.must("list").out


@pytest.mark.spark
def test_window_over_a_view_is_given_where_the_view_follows_its_inputs_and_else_it_is_said(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home", has_engine=True)
    (tmp_path / "root.yaml").write_text(root_manifest())
    node.must("add", str(tmp_path / "root.yaml"))
    ingest(node, tmp_path, 1, 2)
    assert "states no watermark: its event_time is no event time of its inputs" in add(node, tmp_path, "began")
    assert "states no watermark" not in add(node, tmp_path, "latest")
    assert "a row without a partner is given at once" in add(node, tmp_path, "pairs")
    node.must("pull", "began", "latest")
    assert "gives no rows before began states a watermark" in add(node, tmp_path, "days.began")
    assert "gives no rows" not in add(node, tmp_path, "days.latest")
    pulled = node.must("pull", "days.began", "days.latest").out
    assert "days.began: it waits for a watermark of began" in pulled
    assert "days.latest: it waits" not in pulled
    assert "derived 1 row" in pulled or "1 row derived" in pulled
    again = node.must("pull", "days.began").out
    assert "it waits for a watermark of began" in again
    found = [each for each in node.must("status", "-o", "json").json() if each["dataset"] == "days.began"]
    assert [each["command"] for each in found] == ["odf-node inspect plan began"]
    assert "waits for a watermark of began" in found[0]["what"]
    shown = node.must("inspect", "plan", "days.began").out
    assert "began has stated no watermark so far" in shown
    assert "watermark  none: its event_time is no event time" in node.must("inspect", "plan", "began").out

    ingest(node, tmp_path, 3, 4)
    node.must("pull", "latest", "days.latest")
    assert [row["n"] for row in node.must("tail", "days.latest", "-o", "json").json()] == [1, 1, 1]
    # A second node computes the same watermarks.
    other = RealNode(tmp_path / "other", has_engine=True)
    node.must("export", "cities", "latest", "days.latest", "--to", str(tmp_path / "exported"))
    for name in ("cities", "latest", "days.latest"):
        (report,) = other.must("pull", (tmp_path / "exported" / name).as_uri(), "-o", "json").json()
    assert report["replayedSteps"] == 2
