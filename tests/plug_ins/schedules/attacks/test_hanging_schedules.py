"""A source that never answers, or is busy for years, beside a good one, with real sockets (SCHED-7, 10, 12)."""

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import LimitSettings, Schedule
from odf_node.home_folder import HomeFolder
from odf_node.http.served_node import Live
from odf_schedules.background import BackgroundSchedules
from odf_schedules.notes import read_notes
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
    live = Live(Configuration(schedule=rules, limits=LimitSettings(scheduled_pulls=at_once)))

    def open_node() -> Node:
        return Node(HomeFolder(home), SystemClock())

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
    assert 'odf_node_schedule_failing{dataset="silent"} 1.0' in figures
    assert 'odf_node_schedule_failing{dataset="good"}' not in figures
    assert 'odf_node_scheduled_pulls_total{result="failed"}' in figures
    failed = [pull for pull in pulls(log) if pull["dataset"] != "good"]
    assert {pull["result"] for pull in failed} == {"failed"}
    assert all("took longer than" in pull["text"] for pull in failed)
    after = heads(home)
    assert [after[name] for name in ("silent", "silent.too")] == [before[name] for name in ("silent", "silent.too")]
    assert not list(HomeFolder(home).staging.glob("source-*"))


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
    (place,) = read_notes(HomeFolder(home).cache).places.values()
    assert place.standing.result is None
    assert place.standing.due_ms is not None
    assert place.standing.due_ms <= time.time() * 1000  # the next process begins with it
    assert not list(HomeFolder(home).staging.glob("source-*"))


@contextmanager
def busy_server() -> Iterator[tuple[str, list[str]]]:
    """A server that asks to be left alone for thirty thousand years; its address, and what was asked for."""
    asked: list[str] = []

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(429)
            self.send_header("Retry-After", "999999999999")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_host_that_is_busy_is_left_alone_for_a_day_at_most_and_holds_up_no_good_one(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    """SCHED-12."""
    home, source = tmp_path / "home", tmp_path / "good.csv"
    source.write_text("event_time,people\n2024-01-01T00:00:00Z,5\n")
    add(home, tmp_path, "good", source.as_uri())
    with busy_server() as (url, asked):
        for name in ("busy", "busy.too"):
            add(home, tmp_path, name, f"{url}/{name}.csv")
        before = heads(home)
        with schedules(home, Schedule(datasets="%", every="1s"), limit_s=WAIT_S):
            wait_for(lambda: "busy" in {pull["dataset"] for pull in pulls(log)})
            so_far = len(pulls(log))
            wait_for(lambda: [pull["dataset"] for pull in pulls(log)[so_far:]].count("good") >= 3)
        assert asked == ["/busy.csv"]
        (busy,) = [pull for pull in pulls(log) if pull["dataset"] != "good"]
        assert (busy["dataset"], busy["result"]) == ("busy", "unavailable")
        assert "asks to be left alone for 1000000000 s" in busy["text"]
        rest = read_notes(HomeFolder(home).cache).rests["127.0.0.1"]
        assert rest.until_ms - rest.since_ms == 86_400_000
        # The next process leaves it alone, too.
        with schedules(home, Schedule(datasets="%", every="1s"), limit_s=WAIT_S):
            so_far = len(pulls(log))
            wait_for(lambda: [pull["dataset"] for pull in pulls(log)[so_far:]].count("good") >= 2)
        assert asked == ["/busy.csv"]
    assert {name: head for name, head in heads(home).items() if name != "good"} == {
        name: head for name, head in before.items() if name != "good"
    }
    shown = {row["dataset"]: row for row in RealNode(home).must("schedule", "-o", "json").json()}
    assert shown["busy.too"]["next"] == shown["busy.too"]["left_alone_until"] is not None
    (failing,) = [row for row in RealNode(home).must("status", "-o", "json").json() if row["condition"] == "failing"]
    assert f"its host is left alone until {shown['busy']['left_alone_until']}" in failing["what"]


def heads(home: Path) -> dict[str, object]:
    with closing(Node(HomeFolder(home), SystemClock())) as node:
        return {record.name: record.head for record in node.store.list_datasets()}
