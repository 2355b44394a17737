"""A report that is due says so in its manifest: the daemon asks its source without any schedule (CONVERGE-15)."""

from pathlib import Path

import pytest

from support.convergence_homes import add, cities_of
from support.daemons import daemon, wait_until
from support.nodes import RealNode

pytestmark = [pytest.mark.usefixtures("light_engines"), pytest.mark.timeout(600)]

ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read: {{kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP", "city STRING"]}}
      merge: {{kind: Append}}
"""
REPORT = """
kind: DatasetSnapshot
version: 1
content:
  name: report
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: cities, alias: c}]
      transform: {kind: Sql, engine: datafusion, query: "SELECT event_time, city FROM c"}
    - kind: SetAttachments
      attachments: {kind: Embedded, items: [{path: odf-node/converge.yaml, content: "by: '* * * * *'"}]}
"""


def test_source_of_a_report_is_asked_before_it_is_due(tmp_path: Path) -> None:
    node, source = RealNode(tmp_path / "home"), tmp_path / "cities.csv"
    source.write_text("event_time,city\n2024-01-01T00:00:00Z,Oslo\n")
    add(node, tmp_path, ROOT.format(url=source.as_uri()))
    add(node, tmp_path, REPORT)
    with daemon(node.home, settings="[converge]\nmanifests = true\n") as serving:
        wait_until(lambda: cities_of(node, "report") == ["Oslo"] or None, serving.log_file.read_text)
        done = [(each["action"], each["dataset"]) for each in serving.log("converged")]
    assert done == [("ingest", "cities"), ("step", "report")]

    (tmp_path / "manifest.yaml").write_text(REPORT.replace("name: report", "name: other").replace("* * * * *", "seven"))
    refused = node.run("add", str(tmp_path / "manifest.yaml"))
    assert (refused.code, "minute, hour" in refused.err) == (7, True)
