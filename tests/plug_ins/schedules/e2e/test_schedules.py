"""The daemon pulls own datasets at their times: a root whose file changes, and what fails beside it."""

from pathlib import Path

import pytest

from odf_node.composition import open_node
from support.daemons import Daemon, daemon, wait_until
from support.nodes import RealNode
from support.notice_receiver import receiving

pytestmark = pytest.mark.timeout(600)

ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read: {{kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP", "people BIGINT"]}}
      merge: {{kind: Append}}
"""
HEADER = "event_time,people\n"
FIRST, SECOND = "2024-01-01T00:00:00Z,5\n", "2024-01-02T00:00:00Z,6\n"
DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: large
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: cities}]
      transform: {kind: Sql, engine: datafusion, query: "SELECT event_time, people FROM cities WHERE people > 5"}
"""
SETTINGS = """
[[schedule]]
datasets = "cities"
every = "1s"

[[schedule]]
datasets = "none.%"
cron = "30 4 * * *"
"""
DECLARED = """\
    - kind: SetAttachments
      attachments: {kind: Embedded, items: [{path: odf-node/schedule.yaml, content: "every: 1h"}]}
"""
NOTICE = """
[[notice]]
datasets = "large"
url = "http://{}/hook"
"""


def blocks(home: Path, name: str) -> int:
    node = open_node(home)
    try:
        return next(record.head.sequence_number for record in node.store.list_datasets() if record.name == name)
    finally:
        node.close()


def test_changing_file_is_polled_twice_and_a_source_that_is_gone_stays_visible(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """SCHED-1, SCHED-5, SCHED-9, SCHED-11, NOTICE-2."""
    source, home = tmp_path / "cities.csv", tmp_path / "home"
    source.write_text(HEADER + FIRST)
    node = RealNode(home)
    for name, url in (("cities", source.as_uri()), ("gone", (tmp_path / "gone.csv").as_uri())):
        manifest = tmp_path / f"{name}.yaml"
        manifest.write_text(ROOT.format(name=name, url=url) + (DECLARED if name == "gone" else ""))
        node.must("add", str(manifest))
    derivative = tmp_path / "large.yaml"
    derivative.write_text(DERIVATIVE)
    node.must("add", str(derivative))

    def pulled(serving: Daemon, name: str, result: str) -> list[dict]:
        return [each for each in serving.log("scheduled-pull") if (each["dataset"], each["result"]) == (name, result)]

    def wait(serving: Daemon, name: str, result: str, count: int = 1) -> None:
        wait_until(lambda: len(pulled(serving, name, result)) >= count or None, serving.log_file.read_text)

    with receiving() as receiver, daemon(home, settings=SETTINGS + NOTICE.format(receiver.authority)) as serving:
        wait(serving, "cities", "updated")
        first = blocks(home, "cities")
        source.write_text(HEADER + FIRST + SECOND)
        wait(serving, "cities", "updated", 2)
        assert blocks(home, "cities") > first
        for each in pulled(serving, "cities", "updated"):
            assert ("added" in each["rows"], each["quarantined_rows"]) == (True, 0)
        wait(serving, "large", "updated")
        wait(serving, "gone", "failed")
        (reported,) = serving.log("schedules")
        assert (reported["datasets"], reported["without_datasets"]) == (3, ["none.%"])
        # The daemon notes what it did a second later at most.
        rows = wait_until(
            lambda: (
                found
                if len(found := node.must("schedule", "-o", "json").json()) == 3 and all(row["last"] for row in found)
                else None
            ),
            serving.log_file.read_text,
        )
        wait_until(lambda: sum(each["newRows"] for each in receiver.bodies) == 1 or None, serving.log_file.read_text)
        assert {each["dataset"] for each in serving.wait_for("notice", 1)} == {"large"}
        home.with_suffix(".toml").write_text(SETTINGS + "[ingest]\nmanifest_schedules = false\n")
        assert serving.reload()["changed"] == ["ingest.manifest_schedules", "notice"]
        assert serving.wait_for("schedules", 2)[1]["datasets"] == 2

    cities, gone, large = rows
    assert large["when"] == "after its inputs"
    assert (cities["dataset"], cities["when"], cities["attempts"]) == ("cities", "every 1s", 0)
    assert (gone["result"], gone["last_success"], gone["when"]) == ("failed", None, "every 1h (manifest)")
    (large_id,) = [each["id"] for each in node.must("list", "-o", "json").json() if each["name"] == "large"]
    assert {each["id"] for each in receiver.bodies} == {large_id}
    assert "gone.csv" in gone["text"]
    found = node.must("status", "-o", "json").json()
    assert [each["what"].split(",")[0] for each in found if each["condition"] == "scheduled"] == ["1 dataset"]
    assert any("none.%" in each["what"] for each in found if each["condition"] == "waiting")
    audit = node.must("inspect", "audit", "-o", "json").json()
    pulled_by = {(each["actor"], each["subject"]) for each in audit if each["command"] == "pull"}
    assert pulled_by == {("schedule", "cities"), ("schedule", "large")}
    assert "every 1s" in node.must("schedule").out
