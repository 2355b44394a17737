"""Derivatives over much are made in several steps, each bounded, and another node re-executes them all (PLAN-13)."""

import re
from pathlib import Path

import pytest

from support.nodes import RealNode, make_publisher

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: cities, alias: c}}]
      transform: {{kind: Sql, engine: spark, query: "SELECT event_time, city, people FROM c {where}"}}
"""
ONE_ROW = {"ODF_NODE_ENGINES_STEP_ROWS": "1"}


def _add(node: RealNode, folder: Path, name: str, where: str = "") -> None:
    (folder / f"{name}.yaml").write_text(DERIVATIVE.format(name=name, where=where))
    node.must("add", str(folder / f"{name}.yaml"))


def _rows(node: RealNode, name: str) -> object:
    rows = node.must("tail", name, "-n", "100", "-o", "json").json()
    return [{key: value for key, value in row.items() if key != "system_time"} for row in rows]


def _steps(node: RealNode, name: str) -> int:
    return sum(" ExecuteTransform" in line for line in node.must("log", name, "-o", "oneline").out.splitlines())


def test_bounded_steps_give_the_same_rows_as_one_and_are_re_executed(tmp_path: Path) -> None:
    node = make_publisher(tmp_path, has_engine=True).node
    _add(node, tmp_path, "at.once")
    _add(node, tmp_path, "in.steps")

    node.must("pull", "at.once")
    report = node.must("pull", "in.steps", "-o", "json", environment=ONE_ROW).json()

    assert (_steps(node, "at.once"), _steps(node, "in.steps")) == (1, 2)
    assert _rows(node, "in.steps") == _rows(node, "at.once")
    assert (report[0]["newRows"], report[0]["upToDate"]) == (len(_rows(node, "at.once")), False)  # type: ignore[arg-type]
    assert node.must("pull", "in.steps", environment=ONE_ROW).out == "in.steps: up to date\n"
    other = RealNode(tmp_path / "other", has_engine=True)
    with node.serving() as url:
        other.must("pull", f"{url}/cities")
        (taken,) = other.must("pull", f"{url}/in.steps", "-o", "json").json()
    assert (taken["trust"], taken["replayedSteps"], taken["partial"]) == ("re-executed", 2, None)


def test_bounded_steps_of_which_none_gives_a_row_come_to_an_end(tmp_path: Path) -> None:
    node = make_publisher(tmp_path, has_engine=True).node
    _add(node, tmp_path, "nothing", "WHERE people < 0")

    reported = node.must("pull", "nothing", environment={**ONE_ROW, "ODF_NODE_PROGRESS_S": "0.05"}).err

    assert re.search("nothing: computing: [1-9][0-9]* of [0-9]+ rows", reported)
    (read,) = node.must("inspect", "query", "nothing", "-o", "json").json()["inputs"]
    assert read["read"] in (None, [0, read["heldRows"] - 1])
    assert node.must("pull", "nothing", environment=ONE_ROW).out == "nothing: up to date\n"
