"""The daemon's schedules as a thread: changing settings, notes, pulls that cannot begin (SCHED-1, 5, 9)."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import Ingest, Schedule
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder
from odf_node.http.served_node import Live
from odf_node.ports.sources import SourceNotFoundError, SourceUnavailableError
from odf_protocol.errors import MalformedError
from odf_schedules.background import BackgroundSchedules
from odf_schedules.notes import NOTES_FILE, ScheduleNotes, read_notes, write_notes
from odf_schedules.scheduled_pull import judge_failure
from odf_schedules.standings import RunOutcome
from support.nodes import RealNode

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: gone
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read: {{kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP", "people BIGINT"]}}
      merge: {{kind: Append}}
"""
DECLARED = """
    - kind: SetAttachments
      attachments: {kind: Embedded, items: [{path: odf-node/schedule.yaml, content: "every: 2h"}]}
"""
EACH_HOUR = Configuration(schedule=(Schedule(datasets="gone", every="1h"),))


@pytest.fixture
def home(tmp_path: Path) -> HomeFolder:
    """A root whose file is not there, so that no engine is needed."""
    manifest = tmp_path / "gone.yaml"
    manifest.write_text(MANIFEST.format(url=(tmp_path / "gone.csv").as_uri()))
    RealNode(tmp_path / "home").must("add", str(manifest))
    return HomeFolder(tmp_path / "home")


@pytest.fixture
def start(home: HomeFolder) -> Iterator[Callable[[Live], BackgroundSchedules]]:
    begun: list[BackgroundSchedules] = []

    def open_node() -> Node:
        return Node(home, SystemClock())

    with closing(open_node()) as node:

        def start(live: Live) -> BackgroundSchedules:
            begun.append(BackgroundSchedules(node, live, open_node, look_each_s=0.05))
            begun[-1].start()
            return begun[-1]

        yield start
        for each in begun:
            each.end()


def wait_for(find: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 30
    while not find():
        assert time.monotonic() < give_up_s
        time.sleep(0.01)


def results(home: HomeFolder) -> list[RunOutcome | None]:
    return [place.standing.result for place in read_notes(home.cache).places.values()]


def test_schedule_that_is_taken_out_of_the_settings_is_out_of_the_notes(
    home: HomeFolder, start: Callable[[Live], BackgroundSchedules]
) -> None:
    live = Live(EACH_HOUR)
    start(live)
    wait_for(lambda: results(home) == [RunOutcome.FAILED])
    assert 'odf_node_schedule_failing{dataset="gone"} 1.0' in live.metrics.render()
    live.configuration = Configuration()
    wait_for(lambda: read_notes(home.cache).schedules == ())
    assert results(home) == []
    assert "odf_node_schedule_failing{" not in live.metrics.render()


def test_schedule_of_a_manifest_holds_until_the_operator_names_the_dataset_or_switches_it_off(
    tmp_path: Path, home: HomeFolder, start: Callable[[Live], BackgroundSchedules]
) -> None:
    """SCHED-11."""
    live = Live(Configuration(ingest=Ingest(manifest_schedules=False)))
    start(live)
    manifest = tmp_path / "by-itself.yaml"
    url = (tmp_path / "gone.csv").as_uri()
    manifest.write_text(MANIFEST.format(url=url).replace("name: gone", "name: itself") + DECLARED)
    RealNode(home.path).must("add", str(manifest))
    time.sleep(0.2)  # some looks of the thread; what is off never shows
    assert not (home.cache / NOTES_FILE).exists()
    live.configuration = Configuration()
    wait_for(lambda: results(home) == [RunOutcome.FAILED])
    assert 'odf_node_schedule_failing{dataset="itself"} 1.0' in live.metrics.render()
    assert [(each.datasets, each.every) for each in read_notes(home.cache).schedules] == [("itself", "2h")]
    live.configuration = Configuration(schedule=(Schedule(datasets="i%", cron="0 0 1 1 *"),))
    wait_for(lambda: [place.rule for place in read_notes(home.cache).places.values()] == [0])
    live.configuration = Configuration(ingest=Ingest(manifest_schedules=False))
    wait_for(lambda: read_notes(home.cache).schedules == ())


def test_daemon_without_schedules_forgets_those_of_the_one_before(
    home: HomeFolder, start: Callable[[Live], BackgroundSchedules]
) -> None:
    write_notes(home.cache, ScheduleNotes(1, EACH_HOUR.schedule, {}, 1))
    start(Live())
    wait_for(lambda: read_notes(home.cache).schedules == ())


def test_node_without_schedules_notes_nothing(home: HomeFolder, start: Callable[[Live], BackgroundSchedules]) -> None:
    start(Live()).end()
    assert not (home.cache / NOTES_FILE).exists()


def test_notes_are_written_when_something_happened(
    home: HomeFolder, start: Callable[[Live], BackgroundSchedules]
) -> None:
    background = start(Live(EACH_HOUR))
    wait_for(lambda: results(home) == [RunOutcome.FAILED])
    before = (home.cache / NOTES_FILE).stat().st_mtime_ns
    looked_s = background._looked_s
    wait_for(lambda: background._looked_s > looked_s + 1.5)
    assert (home.cache / NOTES_FILE).stat().st_mtime_ns == before


def test_pull_that_cannot_begin_is_tried_again_later(
    home: HomeFolder, start: Callable[[Live], BackgroundSchedules], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Thread.start

    def begin_few(thread: threading.Thread) -> None:
        if thread.name.startswith("pull "):
            raise RuntimeError("can't start new thread")  # as Python says where the system has no more
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", begin_few)
    start(Live(EACH_HOUR))
    wait_for(lambda: results(home) == [RunOutcome.UNAVAILABLE])


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (SourceUnavailableError("s", "no server answers there"), RunOutcome.UNAVAILABLE),
        (SourceUnavailableError("s", "500", status=500), RunOutcome.UNAVAILABLE),
        (SourceUnavailableError("s", "later", status=429), RunOutcome.UNAVAILABLE),
        (SourceUnavailableError("s", "forbidden", status=403), RunOutcome.FAILED),
        (SourceNotFoundError("s", "no such file"), RunOutcome.FAILED),
        (MalformedError("fetch step Url"), RunOutcome.FAILED),
        (UsageError("no polling source"), RunOutcome.FAILED),
        (OSError("no space left"), RunOutcome.UNAVAILABLE),
        (ZeroDivisionError("a fault"), RunOutcome.FAILED),
    ],
    ids=lambda each: str(each)[:20],
)
def test_what_may_heal_by_itself_is_tried_again_soon(error: Exception, result: RunOutcome) -> None:
    """SCHED-5."""
    assert judge_failure(error).result is result
