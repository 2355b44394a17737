"""The daemon killed with SIGKILL in the middle of a scheduled pull: the next one goes on (SCHED-6, SCHED-10)."""

import time
from contextlib import closing
from pathlib import Path

from odf_engines.sandbox.resources import _tree
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from odf_protocol.head import Head
from support.command_line import are_gone
from support.daemons import daemon, wait_until
from support.nodes import RealNode

ROWS = 200_000
MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: numbers
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read: {{kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP", "number BIGINT"]}}
      merge: {{kind: Append}}
"""
SETTINGS = '[[schedule]]\ndatasets = "numbers"\nevery = "1h"\n'


def head(home: HomeFolder) -> Head:
    with closing(MetadataStore(home)) as store:
        (record,) = store.list_datasets()
        return record.head


def test_daemon_that_was_killed_in_a_scheduled_pull_goes_on_without_a_trace(tmp_path: Path) -> None:
    """SCHED-10."""
    source, home = tmp_path / "numbers.csv", HomeFolder(tmp_path / "home")
    lines = (f"2024-01-01T00:00:00Z,{number}\n" for number in range(ROWS))
    source.write_text("event_time,number\n" + "".join(lines))
    manifest = tmp_path / "numbers.yaml"
    manifest.write_text(MANIFEST.format(url=source.as_uri()))
    node = RealNode(home.path)
    node.must("add", str(manifest))
    before = head(home)

    with daemon(home.path, settings=SETTINGS) as serving:

        def is_in_the_middle() -> bool | None:
            assert serving.log("scheduled-pull") == [], "it was too quick to be killed"
            return any(home.engines.glob("process-*/*/in/*")) or None

        wait_until(is_in_the_middle, serving.log_file.read_text)
        processes = set(_tree(serving.process.pid))
        serving.process.kill()
        serving.process.wait()
    while not are_gone(processes):
        time.sleep(0.01)
    assert head(home) == before

    with daemon(home.path, settings=SETTINGS) as serving:
        (pulled,) = serving.wait_for("scheduled-pull")
        assert pulled["result"] == "updated"
    answer = node.must("sql", "-c", "SELECT count(*) AS n, count(DISTINCT number) AS d FROM numbers", "-o", "json")
    assert answer.json() == [{"n": ROWS, "d": ROWS}]
    objects = ObjectFolder(home)
    with closing(MetadataStore(home)) as store:
        assert set(objects.iter_hashes()) == set(store.list_referenced_objects())
    left = {path.name for path in home.staging.iterdir()} - {home.downloads.name, home.engines.name}
    assert left == set()
