"""Schedules in a daemon whose clock is set forward and back (SCHED-6)."""

import time
from pathlib import Path

import pytest

from odf_protocol.timestamp import Timestamp
from support.daemons import daemon, wait_until
from support.nodes import RealNode
from support.shifted_process import ShiftedClock

DECADE_S = 3_650 * 86_400


@pytest.fixture
def clock(tmp_path: Path) -> ShiftedClock:
    return ShiftedClock(tmp_path / "clock")


POLLED = """
kind: DatasetSnapshot
version: 1
content:
  name: polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read: {{kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP"]}}
      merge: {{kind: Append}}
"""


def test_schedule_goes_on_after_its_clock_was_far_ahead(tmp_path: Path, clock: ShiftedClock) -> None:
    """SCHED-6: years that passed at once are made up for by one pull, and keep nothing waiting afterwards."""
    node = RealNode(tmp_path / "home")
    (tmp_path / "polled.yaml").write_text(POLLED.format(url=(tmp_path / "absent.csv").as_uri()))
    node.must("add", str(tmp_path / "polled.yaml"))
    settings = '[[schedule]]\ndatasets = "polled"\nevery = "1h"\n'
    with daemon(tmp_path / "home", settings=settings, environment=clock.environment) as serving:
        serving.wait_for("scheduled-pull")
        clock.set(DECADE_S)
        serving.wait_for("scheduled-pull", 2)
        clock.set(0)
        wait_until(lambda: next_pull_s(node) < time.time() + 2 * 3600 or None, serving.log_file.read_text)
        assert len(serving.log("scheduled-pull")) == 2


def next_pull_s(node: RealNode) -> int:
    (row,) = node.must("schedule", "-o", "json").json()
    return Timestamp.parse(row["next"]).seconds
