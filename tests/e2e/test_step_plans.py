"""``inspect plan``: what a query is, what its next step reads, and what would pass where it is rejected (PLAN-16)."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odf_node.daemon.gauges import add_step_metrics
from odf_node.home_folder import HomeFolder
from odf_node.metrics import Metrics
from odf_node.store import MetadataStore
from support.nodes import RealNode, make_publisher

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: {source}, alias: c}}]
      transform: {{kind: Sql, engine: {engine}, query: "{query}"}}
"""
TOTALS = "SELECT max(event_time) AS event_time, city, sum(people) AS people FROM c WHERE people > 0 GROUP BY city"


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> RealNode:
    return make_publisher(tmp_path_factory.mktemp("plans"), has_engine=True).node


def plan_of(
    node: RealNode, folder: Path, query: str, *, engine: str = "spark", source: str = "cities"
) -> dict[str, Any]:
    """Look at the plan of a manifest; nothing is added by that."""
    before = node.must("list", "-o", "json").out
    file = folder / "new.yaml"
    file.write_text(MANIFEST.format(name="new", query=query, engine=engine, source=source))
    (plan,) = node.must("inspect", "plan", str(file), "--json").json()
    assert node.must("list", "-o", "json").out == before
    return plan


def test_plan_of_a_map_reads_what_is_new(publisher: RealNode, tmp_path: Path) -> None:
    (plan,) = publisher.must("inspect", "plan", "large.cities", "--json").json()
    assert (plan["class"], plan["engine"], plan["isDue"], plan["refused"]) == ("map", "spark", False, None)
    assert plan["stages"] == ["reads c", "keeps rows where (c.people >= CAST(100000 AS BIGINT))", "computes thousands"]
    (read,) = plan["inputs"]
    assert (read["alias"], read["name"], read["newRows"], read["readRows"], read["readBytes"]) == (
        "c",
        "cities",
        0,
        0,
        0,
    )
    assert "next step  none" in publisher.must("inspect", "plan", "large.cities").out


def test_plan_of_a_manifest_that_is_not_added_reads_from_the_first_row(publisher: RealNode, tmp_path: Path) -> None:
    held = len(publisher.must("tail", "cities", "-n", "100", "-o", "json").json())
    plan = plan_of(publisher, tmp_path, TOTALS)
    assert (plan["class"], plan["key"], plan["isDue"]) == ("maintained", ["city"], True)
    assert plan["stages"][0] == "reads c"
    assert plan["stages"][-1] == "groups by c.city"
    assert "twice" in plan["cost"]
    (read,) = plan["inputs"]
    assert (read["newRows"], read["readRows"], read["waitingRows"]) == (held, held, 0)
    assert read["readBytes"] > 0


def test_plan_of_a_view_reads_whole_inputs_again(tmp_path: Path) -> None:
    publisher = make_publisher(tmp_path, has_engine=True)
    node = publisher.node
    (tmp_path / "totals.yaml").write_text(MANIFEST.format(name="totals", query=TOTALS, engine="spark", source="cities"))
    node.must("add", str(tmp_path / "totals.yaml"))
    node.must("pull", "totals")
    before = len(node.must("tail", "cities", "-n", "100", "-o", "json").json())
    publisher.publish("2024-03-01T00:00:00Z,Bern,134794\n", "2024-03-02T12:00:00Z", ("cities",))
    after = len(node.must("tail", "cities", "-n", "100", "-o", "json").json())
    (plan,) = node.must("inspect", "plan", "totals", "--json").json()
    (read,) = plan["inputs"]
    assert (read["newRows"], read["readRows"], plan["isDue"]) == (after - before, after, True)
    events = tmp_path / "events.ndjson"
    reported = {"ODF_NODE_ENGINES_STEP_ROWS": "1", "ODF_NODE_LINEAGE_FILE": str(events)}
    node.must("pull", "totals", environment=reported)
    _check_lineage(node, events)
    (plan,) = node.must("inspect", "plan", "totals", "--json").json()
    assert (plan["isDue"], plan["inputs"][0]["newRows"]) == (False, 0)
    # What the newest step did stands in its step record.
    did = plan["newestStep"]
    assert (did["rowsRead"], did["lateRows"]) == ([after], 0)
    assert (did["stateBefore"]["rows"], did["stateAfter"]["rows"]) == (before, after)
    assert 0 < did["stateBefore"]["bytes"] < did["stateAfter"]["bytes"]
    assert set(did["milliseconds"]) == {"starting", "reading", "state", "computing", "checking"}
    newest = json.loads(node.must("log", "totals", "-o", "json", "-n", "1").out)
    assert newest["statistics"] == {name: did[name] for name in newest["statistics"]}
    assert did["block"] == newest["content"]["sequenceNumber"]
    text = node.must("inspect", "plan", "totals").out
    assert f"newest one block {did['block']}: read {after}, gave +" in text
    assert f"rows read, earlier steps had read {before}" in text
    assert f"  read {after}, gave +" in node.must("log", "totals", "-o", "oneline", "-n", "1").out
    assert f"read {after}, gave +" in node.must("log", "totals", "-o", "yaml", "-n", "1").out.splitlines()[0]
    metrics = Metrics()
    with closing(MetadataStore(HomeFolder(node.home))) as store:
        add_step_metrics(metrics, store)
        lines = metrics.render().splitlines()
        assert metrics.render().splitlines() == lines  # nothing grew
    assert f'odf_node_step_rows{{dataset="totals",rows="known"}} {after}.0' in lines
    assert not [line for line in lines if 'dataset="cities"' in line]


def test_step_bound_leaves_rows_for_later(publisher: RealNode, tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text(MANIFEST.format(name="new", query=TOTALS, engine="spark", source="cities"))
    ran = publisher.must(
        "inspect", "plan", str(tmp_path / "new.yaml"), "--json", environment={"ODF_NODE_ENGINES_STEP_ROWS": "1"}
    )
    (read,) = ran.json()[0]["inputs"]
    assert read["waitingRows"] > 0
    assert read["newRows"] == read["readRows"] > 0


def test_plan_of_a_rejected_query_says_what_would_pass(publisher: RealNode, tmp_path: Path) -> None:
    plan = plan_of(publisher, tmp_path, "SELECT event_time, rand() AS r FROM c")
    assert (plan["class"], plan["cost"]) == (None, None)
    assert plan["refused"]["expression"].startswith("rand(")
    assert "xxhash64" in plan["refused"]["rewrite"]
    shown = publisher.must("inspect", "plan", str(tmp_path / "new.yaml")).out
    assert "rejected    rand(" in shown
    assert "would pass a value computed from the row" in shown


def test_plan_of_windows_is_final_and_that_of_datafusion_per_step(publisher: RealNode, tmp_path: Path) -> None:
    window = "SELECT window.end AS event_time, count(*) AS n FROM c GROUP BY window(event_time, '1 day')"
    assert plan_of(publisher, tmp_path, window)["class"] == "final"
    # The engine that tests share is of Spark, and a command that starts another one leaves it warm.
    apart = RealNode(publisher.home)
    plan = plan_of(apart, tmp_path, "SELECT op, event_time, city FROM c", engine="datafusion")
    assert (plan["class"], plan["stages"]) == ("per step", [])


def test_plan_of_groups_over_a_join_as_of_a_time_says_why_it_is_slow(publisher: RealNode, tmp_path: Path) -> None:
    transform = "transform: {{kind: Sql, "
    text = MANIFEST.replace("alias: c}}]", "alias: c}}, {{datasetRef: large.cities, alias: t}}]")
    text = text.replace(transform, transform + "temporalTables: [{{name: t, primaryKey: [city]}}], ")
    joined = "FROM c a JOIN t FOR SYSTEM_TIME AS OF a.event_time b ON a.city = b.city"
    answers = f"SELECT a.event_time, a.city, b.thousands {joined}"
    groups = f"SELECT max(a.event_time) AS event_time, a.city, count(*) AS n {joined} GROUP BY a.city"
    for query, kind in ((answers, "final"), (groups, "maintained")):
        file = tmp_path / "new.yaml"
        file.write_text(text.format(name="new", query=query, engine="spark", source="cities"))
        (plan,) = publisher.must("inspect", "plan", str(file), "--json").json()
        assert plan["class"] == kind
        assert ("asks for all times: give the joined rows" in plan["cost"]) is (kind == "maintained")


def test_plan_over_an_input_that_is_not_here_says_so(publisher: RealNode, tmp_path: Path) -> None:
    plan = plan_of(publisher, tmp_path, "SELECT event_time FROM c", source="towns")
    assert (plan["class"], plan["inputs"], plan["isDue"]) == (None, [], False)
    assert plan["grade"]["reason"] == "input 'towns' has no columns yet"


def test_plan_of_a_root_is_its_newest_ingest_and_of_nothing_an_error(publisher: RealNode) -> None:
    shown = publisher.must("inspect", "plan", "cities").out
    assert "newest ingest: block" in shown
    assert "Snapshot" in shown  # STAGE-4
    assert publisher.run("inspect", "plan", "nothing.here").code == 3


def _check_lineage(node: RealNode, events: Path) -> None:
    """OBSERVE-9: what a step read and wrote, by the hashes of blocks."""
    heads = {each["name"]: each["head"] for each in node.must("list", "-o", "json").json()}
    start, complete = map(json.loads, events.read_text().splitlines())
    assert (start["eventType"], complete["eventType"], start["outputs"]) == ("START", "COMPLETE", [])
    for name, datasets in (("cities", complete["inputs"]), ("totals", complete["outputs"])):
        (dataset,) = datasets
        assert (dataset["name"], dataset["facets"]["version"]["datasetVersion"]) == (name, heads[name])
        assert {"city", "people"} <= {each["name"] for each in dataset["facets"]["schema"]["fields"]}
