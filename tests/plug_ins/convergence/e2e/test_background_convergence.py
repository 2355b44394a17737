"""The daemon brings datasets up to date by itself, and leaves alone what it cannot (CONVERGE-11 to CONVERGE-14)."""

from pathlib import Path

import pytest

from support.city_datasets import root_manifest
from support.convergence_homes import DERIVATIVE, SETTINGS, add, cities_of, ingest, states
from support.daemons import daemon, wait_until
from support.nodes import RealNode

pytestmark = [pytest.mark.usefixtures("light_engines"), pytest.mark.timeout(600)]


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    made = RealNode(tmp_path / "home")
    add(made, tmp_path, root_manifest("cities"))
    add(made, tmp_path, DERIVATIVE.format(name="names", source="cities", where=""))
    add(made, tmp_path, DERIVATIVE.format(name="report", source="names", where=" WHERE people > 0"))
    return made


def test_rows_that_come_flow_through_a_chain_by_themselves(node: RealNode, tmp_path: Path) -> None:
    """CONVERGE-11"""
    ingest(node, tmp_path, "Oslo")
    with daemon(node.home, settings=SETTINGS.format(more="")) as serving:
        wait_until(lambda: cities_of(node, "report") == ["Oslo"] or None, serving.log_file.read_text)
        for city in ("Rome", "Lima", "Bonn"):
            ingest(node, tmp_path, city)
        everything = ["Bonn", "Lima", "Oslo", "Rome"]
        wait_until(lambda: cities_of(node, "report") == everything or None, serving.log_file.read_text)
        wait_until(
            lambda: {state for state, _ in states(node).values()} == {"up to date"} or None, serving.log_file.read_text
        )
        changed = [each for each in serving.log("converged") if each["result"] == "changed"]
        assert {each["dataset"] for each in changed} == {"names", "report"}
        assert all(each["action"] == "step" for each in changed)
        # Each dataset once for the first row; of three commits in a row, at most one step for each.
        assert 4 <= len(changed) <= 8


def test_rows_that_a_query_leaves_out_are_read_once_and_stop_there(node: RealNode, tmp_path: Path) -> None:
    """CONVERGE-12: no block says that they were read; the note does, and without it they are read once more."""
    ingest(node, tmp_path, "Oslo")
    node.must("converge")
    ingest(node, tmp_path, "Rome", people=0)
    node.must("converge")
    assert states(node)["report"] == ("up to date", None)
    assert node.must("converge").out == "nothing was to be done\n"
    (node.home / "cache" / "convergence.json").unlink()
    assert states(node)["report"] == ("stale", "block 4 of names")
    found = node.must("converge", "-o", "json").json()
    assert [(each["dataset"], each["newBlocks"]) for each in found["actions"]] == [("report", 0)]
    assert states(node)["report"] == ("up to date", None)


def test_nothing_is_done_unless_it_is_switched_on(node: RealNode, tmp_path: Path) -> None:
    ingest(node, tmp_path, "Oslo")
    with daemon(node.home, settings='[converge]\ndatasets = "names"\n') as serving:
        wait_until(lambda: cities_of(node, "names") == ["Oslo"] or None, serving.log_file.read_text)
    assert states(node)["report"] == ("stale", "blocks 0 to 3 of names")
    with daemon(node.home) as serving:
        ingest(node, tmp_path, "Rome")
        assert serving.log("converged") == []
    assert states(node)["names"] == ("stale", "block 4 of cities")


def test_failure_is_named_left_alone_for_a_while_and_stops_nothing_else(node: RealNode, tmp_path: Path) -> None:
    """CONVERGE-9"""
    broken = DERIVATIVE.format(name="broken", source="cities", where=" WHERE 1 / (people - 1) > 0")
    add(node, tmp_path, broken)
    ingest(node, tmp_path, "Oslo")
    with daemon(node.home, settings=SETTINGS.format(more="")) as serving:
        wait_until(lambda: cities_of(node, "report") == ["Oslo"] or None, serving.log_file.read_text)
        failed = wait_until(
            lambda: [each for each in serving.log("converged") if each["result"] == "failed"] or None,
            serving.log_file.read_text,
        )
        assert failed[0]["dataset"] == "broken"
        state, why = states(node)["broken"]
        assert (state, "ivide by zero" in str(why)) == ("failed", True)
    # By hand it is tried at once, and the exit code says what came of it.
    assert node.run("converge").code not in (0, 2)


def test_schedules_and_convergence_of_one_derivative_compute_it_once(node: RealNode, tmp_path: Path) -> None:
    """CONVERGE-13"""
    ingest(node, tmp_path, "Oslo")
    schedules = '[[schedule]]\ndatasets = "names report"\nevery = "1s"\n'
    with daemon(node.home, settings=schedules + SETTINGS.format(more="")) as serving:
        wait_until(lambda: cities_of(node, "report") == ["Oslo"] or None, serving.log_file.read_text)
        ingest(node, tmp_path, "Rome")
        wait_until(lambda: cities_of(node, "report") == ["Oslo", "Rome"] or None, serving.log_file.read_text)
        assert not [each for each in serving.log("converged") if each["result"] == "failed"]
        assert not [each for each in serving.log("scheduled-pull") if each["result"] not in {"updated", "up-to-date"}]
