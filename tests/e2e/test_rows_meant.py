"""Clause FUSION-13: a query that would count corrections as rows is rejected, or says that it means to."""

from pathlib import Path
from typing import Final

import pytest

from support.city_datasets import derivative_manifest, root_manifest
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

MEANT: Final = """\
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/transform.yaml
            content: "changelog: as-rows"
"""
SNAPSHOT: Final = "{kind: Snapshot, primaryKey: [city]}"
ACROSS: Final = {
    "groups": "SELECT event_time, sum(people) AS people FROM c GROUP BY event_time",
    "distinct": "SELECT DISTINCT event_time, city FROM c",
    "window": "SELECT op, event_time, row_number() OVER (ORDER BY city) AS n FROM c",
    "join": "SELECT a.op, a.event_time, b.people FROM c a JOIN c b ON a.city = b.city",
    "subquery": "SELECT op, event_time, city FROM c WHERE people = (SELECT max(people) FROM c)",
}
ROW_BY_ROW: Final = "SELECT op, event_time, city, people FROM c WHERE people > 1"


def make(folder: Path, merge: str, *, has_rows: bool = True) -> RealNode:
    node = RealNode(folder / "home")
    (folder / "root.yaml").write_text(root_manifest(merge=merge))
    node.must("add", str(folder / "root.yaml"))
    if has_rows:
        ingest(node, folder, 1)
    return node


def ingest(node: RealNode, folder: Path, people: int) -> None:
    (folder / "rows.ndjson").write_text(
        f'{{"event_time": "2024-01-01T00:00:00Z", "city": "Oslo", "people": {people}}}\n'
    )
    node.must("ingest", "cities", str(folder / "rows.ndjson"))


def write(folder: Path, name: str, query: str, *, source: str = "cities", more: str = "") -> str:
    transform = f"{{kind: Sql, engine: datafusion, query: '{query}'}}"
    (folder / f"{name}.yaml").write_text(derivative_manifest(name, transform, source=source) + more)
    return str(folder / f"{name}.yaml")


def test_query_across_rows_of_a_dataset_that_corrects_is_rejected_with_the_ways_out(tmp_path: Path) -> None:
    node = make(tmp_path, SNAPSHOT)
    before = node.snapshot()
    for name, query in ACROSS.items():
        ran = node.run("add", write(tmp_path, name, query))
        assert ran.code, name
        assert "'cities' corrects and retracts rows" in ran.err, name
        assert "'engine: spark'" in ran.err, name
        assert "'odf-node/transform.yaml' (SetAttachments) with 'changelog: as-rows'" in ran.err, name
    assert node.snapshot().keys() == before.keys()
    node.must("add", write(tmp_path, "large", ROW_BY_ROW))
    # What passes operations on corrects as its input does.
    node.must("pull", "large")
    assert "'large' corrects" in node.run("add", write(tmp_path, "of.large", ACROSS["groups"], source="large")).err


def test_what_is_meant_is_said_in_the_manifest_and_stays_in_the_chain(tmp_path: Path) -> None:
    node = make(tmp_path, SNAPSHOT)
    node.must("add", write(tmp_path, "groups", ACROSS["groups"], more=MEANT))
    node.must("pull", "groups")
    ingest(node, tmp_path, 2)
    node.must("pull", "groups")
    assert [row["people"] for row in node.must("tail", "groups", "-o", "json").json()] == [1, 3]
    other = write(tmp_path, "other", ACROSS["groups"], more=MEANT.replace("as-rows", "whatever"))
    assert "expected 'changelog: as-rows'" in node.run("add", other).err
    # Who pulls it takes it as it is.
    node.must("export", "cities", "groups", "--to", str(tmp_path / "exported"))
    second = RealNode(tmp_path / "second")
    for name in ("cities", "groups"):
        (report,) = second.must("pull", (tmp_path / "exported" / name).as_uri(), "-o", "json").json()
    assert report["replayedSteps"] == 2


@pytest.mark.parametrize("merge", ["{kind: Append}", "{kind: Ledger, primaryKey: [city]}"])
def test_query_across_rows_that_are_only_appended_is_taken(tmp_path: Path, merge: str) -> None:
    node = make(tmp_path, merge)
    for name, query in ACROSS.items():
        node.must("add", write(tmp_path, name, query))


def test_query_over_an_input_without_columns_is_judged_at_its_first_step(tmp_path: Path) -> None:
    node = make(tmp_path, SNAPSHOT, has_rows=False)
    node.must("add", write(tmp_path, "groups", ACROSS["groups"]))
    ingest(node, tmp_path, 1)
    ran = node.run("pull", "groups")
    assert ran.code
    assert "'changelog: as-rows'" in ran.err
    assert node.must("list", "-o", "json").json()[1]["rows"] == 0
