"""A source that never answers beside a good one, with real sockets, files and engines (SCHED-7, SCHED-10)."""

import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import Limits, Schedule
from odf_node.daemon.background_schedules import BackgroundSchedules
from odf_node.home import Home
from odf_node.http.live import Live
from odf_node.schedules.notes import read_notes
from support.nodes import RealNode

MANIFEST = """
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
WAIT_S = 120.0


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        yield server


@pytest.fixture
def silent_url(silent: socket.socket) -> str:
    return f"http://127.0.0.1:{silent.getsockname()[1]}/data.csv"


def add(home: Path, folder: Path, name: str, url: str) -> None:
    manifest = folder / f"{name}.yaml"
    manifest.write_text(MANIFEST.format(name=name, url=url))
    RealNode(home).must("add", str(manifest))


@contextmanager
def schedules(home: Path, *rules: Schedule, limit_s: float, at_once: int = 2) -> Iterator[Live]:
    live = Live(Configuration(schedule=rules, limits=Limits(scheduled_pulls=at_once)))

    def open_node() -> Node:
        return Node(Home(home), SystemClock())

    with closing(open_node()) as node:
        background = BackgroundSchedules(node, live, open_node, look_each_s=0.2, limit_s=limit_s)
        background.start()
        try:
            yield live
        finally:
            background.end()


def wait_for(find: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + WAIT_S
    while not find():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


def pulls(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "odf_node.http"]
    return [line for line in lines if line["event"] == "scheduled-pull"]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="odf_node.http")
    # The daemon's log goes to its own stream only, where an earlier test had one.
    monkeypatch.setattr(logging.getLogger("odf_node.http"), "propagate", True)
    return caplog


def test_silent_sources_end_in_time_and_hold_up_no_good_one(
    tmp_path: Path, silent_url: str, log: pytest.LogCaptureFixture
) -> None:
    home, source = tmp_path / "home", tmp_path / "good.csv"
    source.write_text("event_time,people\n2024-01-01T00:00:00Z,5\n")
    add(home, tmp_path, "good", source.as_uri())
    add(home, tmp_path, "silent", silent_url)
    add(home, tmp_path, "silent.too", silent_url.replace("127.0.0.1", "localhost"))
    before = heads(home)

    with schedules(home, Schedule(datasets="good silent", every="1s"), limit_s=WAIT_S):
        wait_for(lambda: [pull["result"] for pull in pulls(log)].count("up-to-date") >= 2)
        # The silent one is asked all the time.
        assert {pull["dataset"] for pull in pulls(log)} == {"good"}
    assert heads(home)["good"] != before["good"]

    log.clear()
    with schedules(home, Schedule(datasets="%", every="1s"), limit_s=2.0) as live:
        wait_for(lambda: {pull["dataset"] for pull in pulls(log)} == {"good", "silent", "silent.too"})
        # Both have failed now, so one place is always left.
        asked = len(pulls(log))
        wait_for(lambda: sum(pull["dataset"] == "good" for pull in pulls(log)[asked:]) >= 2)
    figures = live.metrics.render()
    assert 'odf_node_schedule_failing{dataset="silent"} 1' in figures
    assert 'odf_node_schedule_failing{dataset="good"}' not in figures
    assert 'odf_node_scheduled_pulls_total{result="failed"}' in figures
    failed = [pull for pull in pulls(log) if pull["dataset"] != "good"]
    assert {pull["result"] for pull in failed} == {"failed"}
    assert all("took longer than" in pull["text"] for pull in failed)
    after = heads(home)
    assert [after[name] for name in ("silent", "silent.too")] == [before[name] for name in ("silent", "silent.too")]
    assert not list(Home(home).staging.glob("source-*"))


def test_daemon_that_ends_does_not_wait_for_a_silent_source(
    tmp_path: Path, silent: socket.socket, silent_url: str, log: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    add(home, tmp_path, "silent", silent_url)
    with schedules(home, Schedule(datasets="silent", every="1h"), limit_s=WAIT_S), silent.accept()[0] as connection:
        assert connection.recv(3) == b"GET"
        began_s = time.monotonic()
    assert time.monotonic() - began_s < 20
    assert pulls(log) == []
    (place,) = read_notes(Home(home).cache).places.values()
    assert place.standing.result is None
    assert place.standing.due_ms is not None
    assert place.standing.due_ms <= time.time() * 1000  # the next process begins with it
    assert not list(Home(home).staging.glob("source-*"))


def heads(home: Path) -> dict[str, object]:
    with closing(Node(Home(home), SystemClock())) as node:
        return {record.name: record.head for record in node.chains.list_datasets()}
