"""Clause ENGINE-2: an engine that is missing is named, and a query that it would not repeat is not added."""

from pathlib import Path

import pytest

from support.nodes import DERIVATIVE_MANIFEST, FIRST_ROWS, ROOT_MANIFEST, RealNode

QUERY = "SELECT event_time, city, people, people / 1000 AS thousands FROM c WHERE people >= 100000"


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    """A node with a root that has rows; it was read by Spark."""
    node = RealNode(tmp_path / "home", has_engine=True)
    (tmp_path / "root.yaml").write_text(ROOT_MANIFEST, encoding="utf-8")
    (tmp_path / "cities.csv").write_text(f"event_time,city,people\n{FIRST_ROWS}", encoding="utf-8")
    node.must("add", str(tmp_path / "root.yaml"))
    return node


def derivative(folder: Path, engine: str, query: str) -> str:
    path = folder / f"{engine}.yaml"
    text = DERIVATIVE_MANIFEST.replace("engine: spark", f"engine: {engine}").replace(QUERY, query)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_derivative_whose_engine_is_missing_is_not_added(node: RealNode, tmp_path: Path) -> None:
    refused = node.run("add", derivative(tmp_path, "flink", "SELECT 1"))
    assert refused.code == 8
    assert refused.err.splitlines() == [
        "odf-node add: engine 'flink' is not installed (installed: arrow, datafusion, spark)"
    ]
    assert [each["name"] for each in node.must("list", "-o", "json").json()] == ["cities"]


@pytest.mark.spark
def test_query_that_nobody_could_repeat_is_not_added(node: RealNode, tmp_path: Path) -> None:
    node.must("pull", "cities", environment={"CITIES": (tmp_path / "cities.csv").as_uri()})
    refused = node.run("add", derivative(tmp_path, "spark", "SELECT event_time, rand() AS x FROM c"))
    assert refused.code == 2
    assert "transform of 'large.cities': rand()" in refused.err
    assert "instead: a value computed from the row" in refused.err
    added = node.must("add", derivative(tmp_path, "spark", "SELECT event_time, upper(city) AS city FROM c"))
    assert "large.cities: pinned" in added.err
    assert "upper: it uses the table of letters" in added.err


def test_query_over_columns_that_are_not_known_yet_is_graded_later(node: RealNode, tmp_path: Path) -> None:
    added = node.must("add", derivative(tmp_path, "spark", QUERY))
    stated = (
        "large.cities: whether others can repeat its query shows at its first step: input 'cities' has no columns yet"
    )
    assert stated in added.err
