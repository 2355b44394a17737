"""Sinks for bad rows: given behind the commit, again until they are taken, and quarantine has every row (SINK)."""

import csv
import json
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from integration.daemon.test_notices import verifier, wait_for
from odf_corrections.background import BackgroundSinks
from odf_corrections.sinking import open_sinks
from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.configuration import Configuration
from odf_node.home_folder import HomeFolder
from odf_node.http.served_node import Live
from odf_node.ports.notices import MAX_ATTEMPTS, Told
from odf_protocol.did import DidKey
from support.command_line import list_kept
from support.nodes import RealNode
from support.notice_receiver import Receiver, receiving
from support.plug_in_packages import installed_package

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: people
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP", "people STRING"]}}
      merge: {{kind: Append}}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: 1
              validators: [{{kind: Format, column: people, pattern: "[0-9]+"}}]
              sinks:
{sinks}
"""
ROWS = "event_time,people\n2020-01-01T00:00:00Z,1\n2020-01-01T00:00:00Z,many\n2020-01-01T00:00:00Z,=cmd\n"


def write_manifest(folder: Path, *sinks: str) -> str:
    path = folder / "people.yaml"
    path.write_text(MANIFEST.format(sinks="\n".join(f"                - {each}" for each in sinks)))
    return str(path)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., RealNode]:
    def made(*sinks: str, rows: str = ROWS) -> RealNode:
        node = RealNode(tmp_path / "home")
        node.must("add", write_manifest(tmp_path, *sinks))
        (tmp_path / "rows.csv").write_text(rows)
        node.must("ingest", "people", str(tmp_path / "rows.csv"))
        return node

    return made


@contextmanager
def delivering(node: RealNode) -> Iterator[Live]:
    live = Live(Configuration())
    with closing(Node(HomeFolder(node.home), SystemClock())) as opened:
        background = BackgroundSinks(opened, live, look_each_s=0.02)
        background.start()
        try:
            yield live
        finally:
            background.end()


def sinks_of(node: RealNode, name: str = "people") -> Path:
    """Give the folder of what the sinks of a dataset write."""
    (found,) = [each for each in node.must("list", "-o", "json").json() if each["name"] == name]
    return node.home / "sinks" / found["id"].removeprefix("did:odf:")


def waiting(node: RealNode) -> list[str]:
    return [row["columns"]["people"] for row in node.must("quarantine", "show", "people", "-o", "json").json()]


def test_file_has_each_bad_row_once_and_quarantine_has_all(make) -> None:
    node = make("{kind: Quarantine}", "{kind: File, name: bad.ndjson}")
    path = sinks_of(node) / "bad.ndjson"
    assert not path.exists()  # no ingest waits for a sink
    for _ in range(2):
        ran = node.must("quarantine", "deliver", "people")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["columns"]["people"] for line in lines] == ["many", "=cmd"]
    assert ran.out == ""
    assert [(each["plug_in"], each["code"], each["column"]) for each in lines[0]["errors"]] == [
        ("Format", "format", "people")
    ]
    assert (lines[0]["row"], lines[0]["line"], lines[0]["dataset"]) == ("1.1", 3, "people")
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    assert HomeFolder(node.home).find_other_use() is None
    assert waiting(node) == ["many", "=cmd"]
    (node.home / "cache" / "sinks.json").write_text("[")
    node.must("quarantine", "deliver", "people")
    assert len(path.read_text().splitlines()) == 4  # they come twice, and none is lost


@pytest.mark.parametrize("cut", [b'{"dataset": "peo', b'{"row": "' + b"x" * 100_000])
def test_line_that_a_kill_left_cut_spoils_no_other(make, cut: bytes) -> None:
    node = make("{kind: File, name: bad.ndjson}")
    path = sinks_of(node) / "bad.ndjson"
    path.parent.mkdir(parents=True)
    for whole in (b"", b'{"row": "0.1"}\n'):
        path.write_bytes(whole + cut)
        (node.home / "cache" / "sinks.json").unlink(missing_ok=True)
        node.must("quarantine", "deliver", "people")
        rows = [json.loads(line)["row"] for line in path.read_text().splitlines()]
        assert rows == [*(["0.1"] if whole else []), "1.1", "1.2"]


def test_file_begins_anew_when_it_is_full_and_keeps_the_one_before(make) -> None:
    long = "x" * 70_000
    rows = "event_time,people\n" + "".join(f"2020-01-01T00:00:00Z,{long}{n}\n" for n in range(10))
    node = make("{kind: File, name: bad.ndjson, megabytes: 1}", rows=rows)
    node.must("quarantine", "deliver", "people")
    files = [sinks_of(node) / name for name in ("bad.ndjson", "bad.ndjson.1")]
    assert all(0 < file.stat().st_size <= 1024 * 1024 for file in files)
    assert [json.loads(line)["row"] for file in reversed(files) for line in file.read_text().splitlines()] == [
        f"1.{number}" for number in range(1, 11)
    ]


def test_file_stays_with_its_dataset_under_any_name_and_goes_with_it(make, tmp_path: Path) -> None:
    node = make("{kind: File, name: bad.ndjson}")
    node.must("quarantine", "deliver", "people")
    folder = sinks_of(node)
    before = (folder / "bad.ndjson").read_bytes()
    node.must("rename", "people", "folk")
    node.must("add", str(tmp_path / "people.yaml"))  # another one of that name
    for name in ("folk", "people"):
        node.must("ingest", name, str(tmp_path / "rows.csv"))
        node.must("quarantine", "deliver", name)
    assert sinks_of(node, "folk") == folder
    assert (folder / "bad.ndjson").read_bytes().startswith(before)
    lines = [json.loads(line) for line in (folder / "bad.ndjson").read_text().splitlines()]
    assert [line["dataset"] for line in lines] == ["people", "people", "folk", "folk"]
    gone, notes = f"did:odf:{folder.name}", node.home / "cache" / "sinks.json"
    assert gone in json.loads(notes.read_text())
    node.must("delete", "folk", "--yes")
    assert not folder.exists()
    kept = json.loads(notes.read_text())
    assert [*kept] == [f"did:odf:{sinks_of(node).name}"]
    # A deletion that was killed leaves them to gc.
    notes.write_text(json.dumps({**kept, gone: {"x": 1}}))
    node.must("gc")
    assert json.loads(notes.read_text()) == kept
    assert [*(node.home / "sinks").iterdir()] == [sinks_of(node)]
    assert len((sinks_of(node) / "bad.ndjson").read_text().splitlines()) == 2


def test_file_of_csv_has_a_line_for_each_error_and_no_formula_of_strangers(make) -> None:
    node = make("{kind: File, name: bad.csv, format: csv}")
    for _ in range(2):
        node.must("quarantine", "deliver", "people")
        with (sinks_of(node) / "bad.csv").open(newline="") as file:
            found = list(csv.DictReader(file))
        assert [(each["row"], each["code"], each["column"], each["value"]) for each in found] == [
            ("1.1", "format", "people", "many"),
            ("1.2", "format", "people", "'=cmd"),
        ]
    assert (found[0]["line"], found[0]["dataset"], found[0]["plug_in"]) == ("3", "people", "Format")
    node.must("ingest", "people", str(node.home.with_name("rows.csv")))
    node.must("quarantine", "deliver", "people")
    assert (sinks_of(node) / "bad.csv").read_text().count("setAsideAt") == 1


def test_status_says_what_waits_for_which_sink_and_how_it_gets_there(make) -> None:
    """SINK-3."""
    node = make("{kind: Quarantine}", "{kind: File, name: a}", "{kind: File, name: b}")
    node.must("ingest", "people", str(node.home.with_name("rows.csv")))

    def reported() -> list[str]:
        rows = node.must("status", "-o", "json").json()
        return [row["what"] for row in rows if row["command"] == "odf-node quarantine deliver people"]

    before = list_kept(node.home)
    assert reported() == ["2 entries wait for the sink File, which 'odf-node serve' gives it, or this command"] * 2
    assert list_kept(node.home) == before
    node.must("quarantine", "deliver", "people")
    assert reported() == []


def test_file_that_is_a_link_is_not_followed_and_nothing_else_changes(make, tmp_path: Path) -> None:
    node = make("{kind: File, name: bad.ndjson}")
    target = tmp_path / "target"
    target.write_text("mine")
    (sinks_of(node)).mkdir(parents=True)
    (sinks_of(node) / "bad.ndjson").symlink_to(target)
    before = list_kept(node.home)
    ran = node.run("quarantine", "deliver", "people")
    assert (ran.code, "File: entry 1 unavailable" in ran.out) == (1, True)
    assert target.read_text() == "mine"
    assert list_kept(node.home) == before
    assert waiting(node) == ["many", "=cmd"]


def test_webhook_is_told_by_the_daemon_signed_and_again_until_it_takes(make, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver:
        monkeypatch.setenv("HOOK", f"http://{receiver.authority}/secret-path")
        monkeypatch.setattr("odf_node.ports.notices._FIRST_WAIT_S", 0.05)
        receiver.statuses = [503]
        node = make('{kind: Webhook, url: "${{ env.HOOK }}", rows: 1}', "{kind: File, name: bad.ndjson}")
        with delivering(node) as live:
            wait_for(lambda: 'odf_node_sinks_total{result="done"} 2.0' in live.metrics.render())
            assert 'odf_node_sinks_total{result="unavailable"} 1.0' in live.metrics.render()
        assert_reported(node, receiver, count=2)
        receiver.statuses = [410]
        node.must("ingest", "people", str(node.home.with_name("rows.csv")))
        with delivering(node) as live:
            wait_for(lambda: 'odf_node_sinks_total{result="refused"} 1.0' in live.metrics.render())
        assert [body["entry"] for body in receiver.bodies] == [1, 1, 2]
        assert b"secret-path" not in (node.home / "cache" / "sinks.json").read_bytes()


def assert_reported(node: RealNode, receiver: Receiver, count: int) -> None:
    assert len(receiver.got) == count
    path, headers, body = receiver.got[-1]
    with closing(Node(HomeFolder(node.home), SystemClock())) as opened:
        identity = str(DidKey(opened.keys.get_or_create_node_key().public_key()))
    verifier()(identity, receiver.authority, path, "", headers, body)
    reported = receiver.bodies[-1]
    assert (reported["kind"], reported["node"], reported["dataset"], reported["entry"]) == (
        "bad-rows",
        identity,
        "people",
        1,
    )
    assert reported["rowCount"] == 2
    assert [row["columns"]["people"] for row in reported["rows"]] == ["many"]


def test_sink_that_is_away_delays_no_ingest_and_loses_no_row(make) -> None:
    with receiving() as receiver:
        receiver.hangs.set()
        node = make(f'{{kind: Webhook, url: "http://{receiver.authority}/hook"}}')
        with delivering(node):
            wait_for(lambda: len(receiver.got) == 1)
            node.must("ingest", "people", str(node.home.with_name("rows.csv")))  # while it hangs
            assert len(waiting(node)) == 4
            receiver.released.set()


THEIRS = """
from dataclasses import dataclass
from odf_node.ports.sinks import Sink, Told


class Counts(Sink):
    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        column: str

    def deliver(self, entry):
        self.context.folder.mkdir(parents=True, exist_ok=True)
        values = [row["columns"][self.parameters.column] for row in entry.iter_rows()]
        (self.context.folder / "counted").write_text(repr(sorted(values)))
        return Told.DONE, "counted"


class Raises(Counts):
    def deliver(self, entry):
        raise RuntimeError("secret")
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[None]:
    points = {"Counts": "Counts", "Raises": "Raises", "File": "Raises"}
    with installed_package(tmp_path / "site", "odd_sinks", THEIRS, "odf_sinks", points):
        yield


def test_sink_of_another_package_is_given_rows_and_one_that_raises_harms_nobody(theirs, make) -> None:
    node = make("{kind: Raises, column: people}", "{kind: Counts, column: people}", "{kind: File, name: a}")
    with closing(Node(HomeFolder(node.home), SystemClock())) as opened:
        (record,), sinks = opened.store.list_datasets(), open_sinks(opened)
        first = [(each.sink, each.reported, each.why) for each in sinks.deliver(record, 0.0)]
        assert first == [
            ("Raises", Told.UNAVAILABLE, "RuntimeError"),
            ("Counts", Told.DONE, "counted"),
            ("File", Told.DONE, f"2 rows in sinks/{sinks_of(node).name}/a"),
        ]
        assert list(sinks.deliver(record, 1.0)) == []  # it is left alone for a while
        later = [each for number in range(1, MAX_ATTEMPTS + 5) for each in sinks.deliver(record, number * 1e5)]
        assert [each.reported for each in later] == [Told.UNAVAILABLE] * (MAX_ATTEMPTS - 2) + [Told.DROPPED]
    assert (sinks_of(node) / "counted").read_text() == "['=cmd', 'many']"
    assert waiting(node) == ["many", "=cmd"]


WRONG = [
    ("{kind: Fyle, name: a}", "sinks[0].kind", "did you mean 'File'?"),
    ("{kind: File, nam: a}", "sinks[0].nam", "did you mean 'name'?"),
    ("{kind: File, name: ../a}", "sinks[0].name", "a name of letters"),
    ("{kind: File, name: a, megabytes: 0}", "sinks[0].megabytes", "1 to 1000000"),
    ("{kind: File, name: a, format: xls}", "sinks[0].format", "ndjson or csv"),
    ('{kind: Webhook, url: "https://me:secret-word@example.org/"}', "sinks[0].url", "without user, password"),
    ('{kind: Webhook, url: "ftp://example.org/"}', "sinks[0].url", "an http or https address"),
    ('{kind: Webhook, url: "${{ oops }}"}', "sinks[0].url", "a template"),
    ("{kind: Quarantine, off: true}", "sinks[0].off", "a parameter"),
]


def test_sink_that_cannot_be_followed_is_rejected_with_its_place(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    for sink, place, stated in WRONG:
        ran = node.run("add", write_manifest(tmp_path, sink))
        assert (ran.code, place in ran.err, stated in ran.err) == (7, True, True), ran.err
        assert "secret-word" not in ran.err
    assert not (node.home / "sinks").exists()
    assert list_kept(node.home)["datasets"] == ()
