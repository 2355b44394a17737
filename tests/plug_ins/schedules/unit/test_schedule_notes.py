"""What schedules can name, what the daemon notes of them, and how status shows it (SCHED-1, SCHED-9)."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odf_node.cli.main import main
from odf_node.composition import Node, open_node
from odf_node.configuration.declaration import Schedule
from odf_protocol.did import DatasetId
from odf_protocol.events import (
    AttachmentEmbedded,
    AttachmentsEmbedded,
    DatasetKind,
    FetchStepUrl,
    MergeStrategyAppend,
    ReadStepCsv,
    Seed,
    SetAttachments,
    SetPollingSource,
)
from odf_schedules.candidates import CandidateReader
from odf_schedules.declared_schedule import SCHEDULE_PATH
from odf_schedules.notes import NOTES_FILE, NotedPlace, ScheduleNotes, read_notes, write_notes
from odf_schedules.overview import ScheduleOverview
from odf_schedules.standings import Rest, RunEnded, RunOutcome, Standing
from odf_schedules.timetable import Timetable
from support.nodes import ROOT_MANIFEST, RealNode
from support.offers import Judge, PeerChain, PublisherHome, root_chain, select
from support.signing import DATASET_KEY, NEW_KEY, OTHER_KEY

FIRST = DatasetId(b"\1" * 32)
NOTES = ScheduleNotes(
    1_700_000_000_000,
    (Schedule(datasets="cities", every="15m"), Schedule(datasets="none.%", cron="0 4 * * *", time_zone="UTC")),
    {
        FIRST: NotedPlace(
            0, Standing(1_700_000_100_000, 2, 1_700_000_000_000, RunOutcome.UNAVAILABLE, "gone", None), "b"
        ),
        DatasetId(b"\2" * 32): NotedPlace(None, Standing()),
    },
    of_settings=2,
    rests={"data.example": Rest(1_700_000_000_000, 1_700_000_060_000)},
)


def polled(folder: Path, name: str, url: str, key: bytes) -> PeerChain:
    chain = PeerChain(folder, name=name, key=key)
    chain.add(Seed(dataset_id=chain.id, dataset_kind=DatasetKind.ROOT))
    fetch = FetchStepUrl(url=url)
    return chain.add(SetPollingSource(fetch=fetch, read=ReadStepCsv(), merge=MergeStrategyAppend()))


def test_own_roots_with_a_source_and_own_derivatives_can_be_named(node: Node, judge: Judge, tmp_path: Path) -> None:
    home = PublisherHome(judge)
    home.keep(root_chain(tmp_path, name="pushed"))
    root = home.keep(polled(tmp_path, "polled", "https://me:secret@Data.Example:8443/a.csv", NEW_KEY))
    derivative = PeerChain(tmp_path, name="derived", key=OTHER_KEY)
    derivative.add(Seed(dataset_id=derivative.id, dataset_kind=DatasetKind.DERIVATIVE))
    home.keep(derivative.add(select("SELECT * FROM polled", root.id)))
    found = {each.name: each for each in CandidateReader(node.store).list_candidates()}
    assert set(found) == {"polled", "derived"}
    assert (found["polled"].scheme, found["polled"].host) == ("https", "data.example")
    assert found["derived"].inputs == (root.id,)
    assert found["derived"].host is None


@pytest.mark.parametrize("url", ["http://[half", "http://${{ env.HOST }}/a.csv", "//", "http://a\u2100.example/x", "x"])
def test_source_of_a_strange_address_keeps_no_other_from_its_schedule(
    node: Node, judge: Judge, tmp_path: Path, url: str
) -> None:
    home = PublisherHome(judge)
    home.keep(polled(tmp_path, "strange", url, NEW_KEY))
    home.keep(polled(tmp_path, "plain", "file:///data/a.csv", OTHER_KEY))
    found = {each.name: each.host for each in CandidateReader(node.store).list_candidates()}
    assert set(found) == {"strange", "plain"}
    assert found["plain"] is None


def test_datasets_of_others_cannot_be_named(node: Node, judge: Judge, tmp_path: Path) -> None:
    judge.accept(polled(tmp_path, "theirs", "https://data.example/a.csv", DATASET_KEY))
    assert [record.name for record in node.store.list_datasets()] == ["theirs"]
    assert CandidateReader(node.store).list_candidates() == []


def test_schedule_of_a_manifest_is_read_from_the_chain_and_nothing_of_one_that_cannot_be_followed(
    node: Node, judge: Judge, tmp_path: Path
) -> None:
    """SCHED-11; of another's dataset it never holds, see ``test_datasets_of_others_cannot_be_named``."""
    home = PublisherHome(judge)
    for name, text, key in (("daily", "{cron: 0 4 * * *, timeZone: Europe/Berlin}", NEW_KEY), ("odd", "x", OTHER_KEY)):
        item = AttachmentEmbedded(path=SCHEDULE_PATH, content=text)
        chain = polled(tmp_path, name, "file:///data/a.csv", key)
        home.keep(chain.add(SetAttachments(attachments=AttachmentsEmbedded(items=(item,)))))
    found = {each.name: each.schedule for each in CandidateReader(node.store).list_candidates()}
    assert found == {"daily": Schedule(datasets="daily", cron="0 4 * * *", time_zone="Europe/Berlin"), "odd": None}


def test_what_datasets_declare_is_one_line_of_status_and_marked_in_the_list(judge: Judge) -> None:
    notes = replace(NOTES, of_settings=1, places={FIRST: NotedPlace(1, Standing(1_700_000_100_000))})
    with judge.opened() as store:
        overview = ScheduleOverview(store, notes)
        named, declared = overview.list_schedules()
    assert (named.count, declared.schedule, declared.when, declared.count) == (0, None, "by their manifests", 1)
    assert str(declared.next_at) == "2023-11-14T22:15:00Z"


def test_notes_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_notes(tmp_path) == ScheduleNotes()
    assert write_notes(tmp_path, NOTES)
    assert read_notes(tmp_path) == NOTES
    assert [path.name for path in tmp_path.iterdir()] == [NOTES_FILE]


def test_notes_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    assert not write_notes(tmp_path / "absent", NOTES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_notes_that_are_damaged_are_none_or_sound(tmp_path: Path, data: st.DataObject) -> None:
    write_notes(tmp_path, NOTES)
    path = tmp_path / NOTES_FILE
    text = path.read_text()
    place = data.draw(st.integers(0, len(text) - 1))
    path.write_text(text[:place] + data.draw(st.text(max_size=3)) + text[place + data.draw(st.integers(0, 9)) :])
    found = read_notes(tmp_path)
    assert all(each.rule is None or each.rule < len(found.schedules) for each in found.places.values())


@pytest.mark.parametrize("text", ["", "[" * 100_000, "null", '{"noted_ms": 1e999}', '{"places": {"x": {}}}'])
def test_notes_of_another_form_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / NOTES_FILE).write_text(text)
    assert read_notes(tmp_path) == ScheduleNotes()


def test_status_and_schedule_show_what_fails_what_is_idle_and_what_comes_next(
    judge: Judge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = PublisherHome(judge).keep(root_chain(tmp_path))
    failing = NOTES.places[FIRST]
    write_notes(judge.home.cache, replace(NOTES, places={record.id: failing}))

    assert main(["--home", str(judge.home.path), "status", "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["condition"], row["dataset"], row["what"], row["command"]) for row in rows] == [
        ("failing", "cities", "its pull by schedule failed: gone", "odf-node pull cities"),
        ("waiting", None, "no own dataset that can be pulled is called 'none.%' (0 4 * * * UTC)", "odf-node list"),
        ("scheduled", None, "1 dataset, every 15m, next 2023-11-14T22:15:00Z", "odf-node schedule"),
    ]

    assert main(["--home", str(judge.home.path), "schedule", "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {
        "dataset": "cities",
        "when": "every 15m",
        "next": "2023-11-14T22:15:00Z",
        "last": "2023-11-14T22:13:20Z",
        "result": "unavailable",
        "last_success": None,
        "attempts": 2,
        "left_alone_until": None,
        "text": "gone",
    }

    resting = replace(failing, host="data.example")
    rests = {"data.example": Rest(1_700_000_000_000, 1_700_003_600_000)}
    write_notes(judge.home.cache, replace(NOTES, places={record.id: resting}, rests=rests))
    assert main(["--home", str(judge.home.path), "status", "-o", "json"]) == 0
    why = "gone; its host is left alone until 2023-11-14T23:13:20Z"
    assert json.loads(capsys.readouterr().out)[0]["what"] == f"its pull by schedule failed: {why}"
    assert main(["--home", str(judge.home.path), "schedule", "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["next"], row["left_alone_until"], row["text"]) == ("2023-11-14T23:13:20Z", "2023-11-14T23:13:20Z", why)


def test_node_without_schedules_says_where_they_are_set(judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(judge.home.path), "schedule"]) == 0
    assert "[[schedule]]" in capsys.readouterr().err


def test_schedule_shows_what_failed_alone(tmp_path: Path) -> None:
    """SCHED-9."""
    node = RealNode(tmp_path / "home")
    for name in ("good", "bad"):
        (tmp_path / name).write_text(ROOT_MANIFEST.replace("name: cities", f"name: {name}"))
        node.must("add", str(tmp_path / name))
    ids = {each["name"]: DatasetId.parse(each["id"]) for each in node.must("list", "-o", "json").json()}
    failed = Standing(
        due_ms=None, attempts=3, ended_ms=NOTES.noted_ms, result=RunOutcome.UNAVAILABLE, text="away", well_ms=1
    )
    well = Standing(ended_ms=NOTES.noted_ms, result=RunOutcome.UPDATED)
    places = {ids["good"]: NotedPlace(0, well), ids["bad"]: NotedPlace(0, failed)}
    schedules = (Schedule(datasets="%", every="1h", priority="high"),)
    assert write_notes(node.home / "cache", ScheduleNotes(NOTES.noted_ms, schedules, places, 1))
    (row,) = node.must("schedule", "--failing", "-o", "json").json()
    assert (row["dataset"], row["attempts"], row["text"]) == ("bad", 3, "away")
    shown = node.must("schedule", "--failing").out
    assert "TRIES" in shown
    assert "good" not in shown
    assert "every 1h, high priority" in node.must("schedule").out


FOLLOWER = """
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "SOURCE"}
      read: {kind: Parquet}
      merge: {kind: Append}
"""


def test_follower_is_due_after_what_it_follows(tmp_path: Path) -> None:
    """SCHED-8."""
    node, now_ms = RealNode(tmp_path / "home"), 1_700_000_000_000
    for name, source in (("cities", "https://example.org/x"), ("copy", "dataset:cities")):
        (tmp_path / name).write_text(FOLLOWER.replace("NAME", name).replace("SOURCE", source))
        node.must("add", str(tmp_path / name))
    with closing(open_node(node.home)) as opened:
        found = CandidateReader(opened.store).list_candidates()
    plan = Timetable({})
    plan.renew((Schedule(datasets="cities", every="1d"),), found, now_ms)
    for name in ("cities", "copy"):
        (due,) = plan.take_due(now_ms, 2)
        assert due.name == name
        plan.end(due.id, RunEnded(RunOutcome.UPDATED), now_ms)
