"""``graph`` and ``plan`` over real homes: states, impact, dry runs (CONVERGE-1, CONVERGE-5, CONVERGE-7)."""

from pathlib import Path
from typing import Any

import pytest

from support.city_datasets import root_manifest
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: {source}, alias: c}}]
      transform: {{kind: Sql, engine: datafusion, query: 'SELECT event_time, city FROM c'}}
"""


def add(node: RealNode, folder: Path, text: str) -> None:
    (folder / "manifest.yaml").write_text(text)
    node.must("add", str(folder / "manifest.yaml"))


def ingest(node: RealNode, folder: Path, city: str) -> None:
    (folder / "rows.ndjson").write_text(f'{{"event_time": "2024-01-01T00:00:00Z", "city": "{city}", "people": 1}}\n')
    node.must("ingest", "cities", str(folder / "rows.ndjson"))


def states(node: RealNode, *names: str) -> dict[str, tuple[str, str | None]]:
    found = node.must("graph", *names, "-o", "json").json()["datasets"]
    return {each["dataset"]: (each["state"], each["why"]) for each in found}


def actions(node: RealNode, *subjects: str) -> list[tuple[str, str, bool]]:
    found = node.must("plan", *subjects, "-o", "json").json()["actions"]
    return [(each["action"], each["dataset"], each["certain"]) for each in found]


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    made = RealNode(tmp_path / "home")
    add(made, tmp_path, root_manifest("cities"))
    add(made, tmp_path, DERIVATIVE.format(name="names", source="cities"))
    add(made, tmp_path, DERIVATIVE.format(name="report", source="names"))
    return made


def test_graph_follows_rows_through_a_chain_of_derivatives(node: RealNode, tmp_path: Path) -> None:
    assert states(node)["names"] == ("waiting", "its input cities has had no rows yet")
    assert actions(node) == []
    ingest(node, tmp_path, "Oslo")
    assert states(node)["names"] == ("stale", "blocks 0 to 3 of cities")
    assert actions(node) == [("step", "names", True), ("step", "report", False)]
    node.must("pull", "names")
    assert states(node)["report"] == ("stale", "blocks 0 to 3 of names")
    node.must("pull", "report")
    assert {state for state, _ in states(node).values()} == {"up to date"}
    ingest(node, tmp_path, "Rome")
    ingest(node, tmp_path, "Lima")
    assert states(node, "report") == {
        "cities": ("up to date", None),
        "names": ("stale", "blocks 4 to 5 of cities"),
        "report": ("stale", "its input names is stale"),
    }
    assert actions(node) == [("step", "names", True), ("step", "report", False)]


def test_change_without_rows_makes_nothing_stale(node: RealNode, tmp_path: Path) -> None:
    ingest(node, tmp_path, "Oslo")
    node.must("pull", "names", "report")
    event = "kind: MetadataEvent\nversion: 1\ncontent: {kind: SetInfo, description: Cities}\n"
    (tmp_path / "info.yaml").write_text(event)
    node.must("change", "cities", str(tmp_path / "info.yaml"))
    assert {state for state, _ in states(node).values()} == {"up to date"}


def test_dry_runs_of_a_change_and_of_a_manifest_write_nothing(node: RealNode, tmp_path: Path) -> None:
    ingest(node, tmp_path, "Oslo")
    node.must("pull", "names", "report")
    before = node.must("list", "-w", "-o", "json").json()
    assert actions(node, "cities") == [("step", "names", True), ("step", "report", False)]
    manifest = tmp_path / "more.yaml"
    manifest.write_text(
        "---".join(DERIVATIVE.format(name=name, source=source) for name, source in (("b", "a"), ("a", "cities")))
    )
    assert actions(node, str(manifest)) == [("step", "a", True), ("step", "b", False)]
    manifest.write_text(DERIVATIVE.format(name="b", source="nothing"))
    refused = node.run("plan", str(manifest))
    assert (refused.code, "reads 'nothing', which is not in this node" in refused.err) == (3, True)
    assert node.run("plan", "nothing").code == 3
    assert node.must("list", "-w", "-o", "json").json() == before


def test_impact_has_what_steps_took(node: RealNode, tmp_path: Path) -> None:
    ingest(node, tmp_path, "Oslo")
    node.must("pull", "names", "report")
    impact: dict[str, Any] = node.must("graph", "--impact", "cities", "-o", "json").json()
    assert [(each["dataset"], each["rowsRead"]) for each in impact["own"]] == [("names", 1), ("report", 1)]
    assert impact["seconds"] == pytest.approx(sum(each["seconds"] for each in impact["own"]))
    assert impact["seconds"] > 0
    assert "makes 2 datasets here stale" in node.must("graph", "--impact", "cities").out


def test_owner_of_a_derivative_is_waited_for(node: RealNode, tmp_path: Path) -> None:
    """B has A's data and A's derivative of it: what A has not computed, B cannot."""
    ingest(node, tmp_path, "Oslo")
    node.must("pull", "names")
    node.must("export", "cities", "names", "--to", str(tmp_path / "exported"))
    other = RealNode(tmp_path / "other")
    for name in ("cities", "names"):
        other.must("pull", (tmp_path / "exported" / name).as_uri())
    assert {state for state, _ in states(other).values()} == {"up to date"}
    ingest(node, tmp_path, "Rome")
    node.must("export", "cities", "--to", str(tmp_path / "later"))
    other.must("pull", (tmp_path / "later" / "cities").as_uri())
    state, why = states(other)["names"]
    assert state == "waiting"
    assert why is not None
    assert why.endswith("has not read block 4 of cities")


def test_pictures_have_every_dataset_and_edge(node: RealNode) -> None:
    dot, mermaid = node.must("graph", "-o", "dot").out, node.must("graph", "-o", "mermaid").out
    assert dot.count(" -> ") == mermaid.count("-->") == 2
    assert dot.startswith("digraph convergence {")
    assert all(name in dot and name in mermaid for name in ("cities", "names", "report"))
