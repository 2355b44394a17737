"""What was not taken is shown, fixed, sent again exactly once, or given up (QUAR)."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.command_line import environment_of, list_kept
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: orders
  kind: Root
  metadata:
    - kind: {source}
      read:
        kind: Csv
        header: true
        schema:
          fields:
            - {{name: event_time, type: {{kind: Option, inner: Date}}}}
            - {{name: id, type: Int64}}
            - {{name: amount, type: {{kind: Option, inner: Int64}}}}
      merge: {merge}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              largestBadShare: {share}
              validators:
                - {{kind: Range, column: amount, least: 0, most: {most}}}
                - {{kind: Required, columns: [amount]}}
"""
PUSH = "AddPushSource\n      sourceName: default"
ROWS = "event_time,id,amount\n2020-01-01,1,10\n2020-01-02,2,-5\n2020-01-03,3,\n2020-01-04,4\n2020-01-05,5,50\n"


FRESH = "{kind: Freshness, column: event_time, within: 1d}"


def manifest(folder: Path, *, source: str = PUSH, merge: str = "{kind: Append}", share: float = 0.9, most: int = 100):
    path = folder / "orders.yaml"
    path.write_text(MANIFEST.format(source=source, merge=merge, share=share, most=most))
    return str(path)


def ingest(node: RealNode, folder: Path, text: str = ROWS) -> None:
    (folder / "orders.csv").write_text(text)
    node.must("ingest", "orders", str(folder / "orders.csv"))


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    """Orders 1 and 5 are taken; 2 and 3 are bad and 4 is broken."""
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path))
    ingest(node, tmp_path)
    return node


def shown(node: RealNode, *words: str) -> list[dict]:
    return node.must("quarantine", "show", "orders", *words, "-o", "json").json()


def states(node: RealNode, *entries: str) -> dict[str, str]:
    entries = entries or tuple(str(each["entry"]) for each in listed(node))
    return {row["row"]: row["state"] for row in shown(node, *entries)} if entries else {}


def listed(node: RealNode) -> list[dict]:
    return node.must("quarantine", "list", "orders", "-o", "json").json()


def amounts(node: RealNode) -> dict[int, int | None]:
    rows = node.must("tail", "orders", "-n", "1000", "-o", "json").json()
    assert len({row["id"] for row in rows}) == len(rows), "a row entered twice"
    return {row["id"]: row["amount"] for row in rows}


def kept(node: RealNode) -> tuple:
    found = list_kept(node.home)
    return found["datasets"], found["objects"], listed(node), shown(node, *(str(e["entry"]) for e in listed(node)))


def test_rows_are_shown_as_they_were_sent_with_all_their_errors(node: RealNode) -> None:
    (entry,) = listed(node)
    assert (entry["rows"], entry["waiting"], entry["pushSource"], entry["batch"]) == (3, 3, "default", None)
    bad, empty, broken = shown(node)
    number = entry["entry"]
    assert (bad["row"], bad["line"], bad["original"]) == (f"{number}.1", 3, "2020-01-02,2,-5")
    assert bad["columns"] == {"event_time": "2020-01-02", "id": "2", "amount": "-5"}
    assert [error["code"] for error in empty["errors"]] == ["required"]
    assert (broken["stage"], broken["errors"][0]["code"]) == ("read", "broken-record")
    text = node.must("quarantine", "show", "orders").out
    assert f"{number}.1  waits  " in text
    assert "    Range [range] amount: expected at least 0 and at most 100, found '-5'" in text
    assert [row["row"] for row in shown(node, "--code", "required")] == [f"{number}.2"]


def test_words_of_a_sender_stay_on_their_line_and_steer_no_terminal(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path))
    ingest(node, tmp_path, 'event_time,id,amount\n2020-01-01,1,1\n"\n9.9  waits  \x1b[2Jall is well",2\n')
    lines = node.must("quarantine", "show", "orders").out.splitlines()
    assert len(lines) == 3
    assert "\\n9.9  waits  \\x1b[2Jall is well" in lines[1]
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_rows_are_fixed_by_an_edited_file_and_enter_once(node: RealNode, tmp_path: Path, form: str) -> None:
    entry = listed(node)[0]["entry"]
    exported = node.must("quarantine", "export", "orders", "-o", form).out
    path = tmp_path / f"edited.{form}"
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(exported)))
        assert rows[0]["_errors"] == "amount: expected at least 0 and at most 100"
        rows[0]["amount"], rows[1]["amount"], rows[2]["amount"] = "5", "7", "999"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    else:
        objects = [json.loads(line) for line in exported.splitlines()]
        objects[0]["amount"], objects[1]["amount"], objects[2]["amount"] = 5, "7", "999"
        path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    node.must("quarantine", "fix", "orders", "--file", str(path))
    assert amounts(node) == {1: 10, 5: 50}
    assert set(states(node).values()) == {"mended"}
    ran = node.must("quarantine", "resend", "orders")
    assert "orders: 2 rows added" in ran.out
    assert amounts(node) == {1: 10, 5: 50, 2: 5, 3: 7}
    # The one that failed again is a new row that names the old one.
    again = listed(node)[1]["entry"]
    assert states(node) == {
        f"{entry}.1": "resent", f"{entry}.2": "resent", f"{entry}.3": "resent", f"{again}.1": "waits",
    }  # fmt: skip
    (row,) = shown(node)
    assert (row["resentFrom"], row["columns"]["amount"], row["errors"][0]["code"]) == (f"{entry}.3", "999", "range")
    assert shown(node, f"{entry}.1")[0]["sequenceNumber"] == listed(node)[1]["sequenceNumber"]
    # Nothing of it enters again.
    before = kept(node)
    for words in (
        ("resend", "orders", f"{entry}.1"),
        ("fix", "orders", "--file", str(path)),
        ("drop", "orders", f"{entry}.2"),
    ):
        refused = node.run("quarantine", *words)
        assert refused.code == 1
        assert "does not wait any more" in refused.err
        assert kept(node) == before
    node.must("quarantine", "drop", "orders", str(again))
    assert "0 rows sent again" in node.must("quarantine", "resend", "orders").err
    assert amounts(node) == {1: 10, 5: 50, 2: 5, 3: 7}


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("id,amount\n1,2\n", "edited.csv:2: expected the id of a row such as 3.17 in _row, found ''"),
        ("_row,amount\n{entry}.1,2\n{entry}.1,3\n", "edited.csv:3: the row {entry}.1 is there twice"),
        ("_row,amount\n{entry}.1,2,3\n", "edited.csv:2: expected 2 fields as in the first line, found 3"),
        ("_row,amount\n{entry}.1,2\n{entry}.9,2\n", "{entry}.9 of the quarantine does not wait any more"),
        ("_row,amount\n777.1,2\n", "777.1 of the quarantine does not wait any more"),
    ],
    ids=["no-id", "twice", "width", "no-such-row", "no-such-entry"],
)
def test_edited_file_that_names_no_waiting_row_fixes_nothing(
    node: RealNode, tmp_path: Path, text: str, stated: str
) -> None:
    entry = listed(node)[0]["entry"]
    (tmp_path / "edited.csv").write_text(text.replace("{entry}", str(entry)))
    before = kept(node)
    ran = node.run("quarantine", "fix", "orders", "--file", str(tmp_path / "edited.csv"))
    assert ran.code in {1, 7}
    assert stated.replace("{entry}", str(entry)) in ran.err
    assert kept(node) == before


def test_entry_that_is_not_there_is_named_with_the_command_that_shows_those_that_are(node: RealNode) -> None:
    """QUAR-4: a batch that was sent again in vain has another number, which its sender does not know."""
    before = list_kept(node.home)
    for unknown in ("7", f"{listed(node)[0]['entry']}.4", "0.1"):
        for action, *words in (["show"], ["fix", "--set", "amount=1"], ["resend"], ["drop"], ["export"]):
            ran = node.run("quarantine", action, "orders", unknown, *words)
            assert ran.code == 3
            assert f"quarantine of orders has no {unknown}; 'odf-node quarantine list orders' shows its" in ran.err
    assert list_kept(node.home) == before


@pytest.mark.parametrize("name", ["amuont", '"amuont"', "`amuont`"])
def test_column_that_nobody_has_is_rejected_with_the_one_that_was_meant(
    node: RealNode, tmp_path: Path, name: str
) -> None:
    """QUAR-4: it was taken for one more column, and the row was sent again as it had been."""
    before = kept(node)
    (tmp_path / "edited.csv").write_text(f"_row,{name.replace(chr(34), chr(34) * 3)}\n{listed(node)[0]['entry']}.1,2\n")
    for words in (("--set", f"{name}=5"), ("--file", str(tmp_path / "edited.csv"))):
        ran = node.run("quarantine", "fix", "orders", *words)
        assert ran.code == 2
        assert "there is no column 'amuont'; did you mean 'amount'?" in ran.err
        assert kept(node) == before


@pytest.mark.parametrize("name", ["amount", '"amount"', "`amount`"])
def test_column_is_named_as_sql_names_it(node: RealNode, name: str) -> None:
    node.must("quarantine", "fix", "orders", f"{listed(node)[0]['entry']}.1", "--set", f"{name}=5")
    assert shown(node)[0]["mended"] == {"event_time": "2020-01-02", "id": "2", "amount": "5"}


@pytest.mark.parametrize("names", [("amount", '"amount"'), ("`amount`", "amount"), ("amount", "amount")])
def test_column_that_is_named_twice_is_rejected(node: RealNode, tmp_path: Path, names: tuple[str, str]) -> None:
    """QUAR-4: the last one was taken, without a word."""
    before = kept(node)
    row = f"{listed(node)[0]['entry']}.1"
    path = tmp_path / "edited.ndjson"
    path.write_text(f'{{{", ".join(json.dumps(name) + ": 7" for name in names)}, "_row": "{row}"}}\n')
    ran = node.run("quarantine", "fix", "orders", row, "--set", f"{names[0]}=5", "--set", f"{names[1]}=6")
    assert (ran.code, "'amount'" in ran.err, "twice" in ran.err) == (2, True, True), ran
    if len(set(names)) > 1:
        ran = node.run("quarantine", "fix", "orders", "--file", str(path))
        assert (ran.code, "'amount' is named twice" in ran.err) == (2, True), ran
    assert kept(node) == before


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_row_in_which_nothing_was_edited_is_not_fixed(node: RealNode, tmp_path: Path, form: str) -> None:
    """QUAR-4: of a file as it was exported, all rows were told to be fixed."""
    path = tmp_path / f"edited.{form}"
    before = kept(node)
    path.write_text(node.must("quarantine", "export", "orders", "-o", form).out)
    ran = node.must("quarantine", "fix", "orders", "--file", str(path))
    assert "nothing was edited, no row was fixed" in ran.out
    assert kept(node) == before

    path.write_text(path.read_text().replace("-5", "5", 1))
    ran = node.must("quarantine", "fix", "orders", "--file", str(path))
    assert "orders: 1 row fixed" in ran.out
    assert "2 rows of" in ran.err
    assert list(states(node).values()) == ["mended", "waits", "waits"]


@pytest.mark.spark
def test_text_without_quotes_is_told_how_it_is_written(node: RealNode) -> None:
    """QUAR-4; of 'correct', too (ING-27)."""
    for words in (["quarantine", "fix", "orders"], ["correct", "orders", "--where", "id = 1", "--reason", "x", "-y"]):
        refused = node.run(*words, "--set", "amount=many")
        assert refused.code == 2, refused.err
        assert """there is no column 'many'; a text stands in quotes: --set "amount='many'\"""" in refused.err


def test_rows_are_fixed_by_sql_and_by_changed_rules(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home", has_engine=True)
    node.must("add", manifest(tmp_path, merge="{kind: Snapshot, primaryKey: [id]}"))
    ingest(node, tmp_path, ROWS.replace("5,50", "5,500"))
    assert amounts(node) == {1: 10}
    entry = listed(node)[0]["entry"]
    node.must(
        "quarantine",
        "fix",
        "orders",
        f"{entry}.1",
        f"{entry}.2",
        "--set",
        "amount=coalesce(abs(CAST(amount AS BIGINT)), 0)",
    )
    assert [row["mended"]["amount"] for row in shown(node, f"{entry}.1", f"{entry}.2")] == ["5", "0"]
    assert "2 rows added" in node.must("quarantine", "resend", "orders", f"{entry}.1", f"{entry}.2").out
    # Rows of a snapshot say nothing about the others.
    assert amounts(node) == {1: 10, 2: 5, 3: 0}
    node.must("add", "--replace", manifest(tmp_path, merge="{kind: Snapshot, primaryKey: [id]}", most=1000))
    ran = node.must("quarantine", "resend", "orders")
    assert "1 row added" in ran.out
    assert "1 row could not be taken apart and cannot be sent as they are" in ran.err
    assert amounts(node) == {1: 10, 2: 5, 3: 0, 5: 500}
    assert list(states(node).values()) == ["resent", "resent", "waits", "resent"]


BAD_BATCH = "event_time,id,amount\n2020-01-01,1,10\n2020-01-02,2,-5\n2020-01-03,3,-5\n"


@pytest.fixture
def strict(tmp_path: Path) -> RealNode:
    """A batch waits whole."""
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path, share=0.5))
    (tmp_path / "orders.csv").write_text(BAD_BATCH)
    for _ in range(2):
        ran = node.run("ingest", "orders", str(tmp_path / "orders.csv"))
        assert ran.code == 7
        assert "'odf-node quarantine show orders'" in ran.err
    return node


def test_rejected_batch_waits_whole_and_once_and_is_released_once(strict: RealNode, tmp_path: Path) -> None:
    (entry,) = listed(strict)
    assert entry["batch"] == {"why": "at most 50% may fail", "fate": None, "waits": True}
    number = str(entry["entry"])
    assert [row["state"] for row in shown(strict)] == ["batch waits", "batch waits"]
    before = kept(strict)
    again = strict.run("quarantine", "resend", "orders", number)
    assert again.code == 7
    assert kept(strict) == before
    (tmp_path / "edited.csv").write_text(f"_row,event_time,id,amount\n{number}.1,2020-01-02,2,5\n")
    single = (f"{number}.1",)
    for words in (
        ("resend", "orders", *single),
        ("drop", "orders", *single),
        ("fix", "orders", *single, "--set", "amount=5"),
        ("fix", "orders", "--file", str(tmp_path / "edited.csv")),
    ):
        refused = strict.run("quarantine", *words)
        assert (refused.code, f"batch {number}, which waits whole" in refused.err) == (2, True), refused
    reported = strict.must("quarantine", "resend", "orders").err
    assert f"batch {number} waits whole: name it" in reported
    assert f"resend orders {number} --release lets the batch pass" in strict.must("quarantine", "show", "orders").err
    assert kept(strict) == before
    released = strict.must("quarantine", "resend", "orders", number, "--release")
    assert "1 row added" in released.out
    assert amounts(strict) == {1: 10}
    batch, rest = listed(strict)
    assert (batch["batch"]["fate"], rest["waiting"], rest["batch"]) == ("resent", 2, None)
    # Its bytes are not kept any longer: what is left are the slice and its bad rows, in both entries the same.
    assert len(list_kept(strict.home)["objects"]) == 2
    before = kept(strict)
    for words in (("resend", "orders", number, "--release"), ("drop", "orders", number)):
        assert strict.run("quarantine", *words).code == 1
        assert kept(strict) == before


def test_rejected_batch_without_a_bad_row_is_shown_with_the_command_that_lets_it_pass(tmp_path: Path) -> None:
    """QUAR-2: what is wrong is the batch, and 'show' says so, as no row does."""
    node = RealNode(tmp_path / "home")
    text = Path(manifest(tmp_path)).read_text().replace("{kind: Required, columns: [amount]}", FRESH)
    (tmp_path / "orders.yaml").write_text(text)
    node.must("add", str(tmp_path / "orders.yaml"))
    (tmp_path / "orders.csv").write_text("event_time,id,amount\n2020-01-01,1,10\n")
    refused = node.run("ingest", "orders", str(tmp_path / "orders.csv"))
    assert refused.code == 7
    assert "'odf-node quarantine resend orders ENTRY --release' lets it pass" in refused.err
    reported = node.must("quarantine", "show", "orders")
    assert "the batch waits whole" in reported.out
    assert "the newest value is 2020-01-01" in reported.out
    (command,) = [line for line in reported.err.splitlines() if line.startswith("next: odf-node ")]
    node.must(*command.split(" lets ")[0].removeprefix("next: odf-node ").split())
    assert "nothing waits" in node.must("quarantine", "show", "orders").err


def test_rejected_batch_goes_through_once_its_rules_or_its_file_are_fixed(strict: RealNode, tmp_path: Path) -> None:
    number = str(listed(strict)[0]["entry"])
    (tmp_path / "mended.csv").write_text(BAD_BATCH.replace("-5", "6"))
    assert (
        "3 rows added"
        in strict.must("quarantine", "resend", "orders", number, "--file", str(tmp_path / "mended.csv")).out
    )
    assert amounts(strict) == {1: 10, 2: 6, 3: 6}
    assert listed(strict)[0]["batch"]["fate"] == "resent"


def test_waiting_batch_that_its_source_gives_again_waits_no_more(strict: RealNode, tmp_path: Path) -> None:
    strict.must("add", "--replace", manifest(tmp_path, share=0.9))
    assert "1 row added" in strict.must("ingest", "orders", str(tmp_path / "orders.csv")).out
    number = str(listed(strict)[0]["entry"])
    assert listed(strict)[0]["batch"]["fate"] == "resent"
    assert strict.run("quarantine", "resend", "orders", number, "--release").code == 1
    assert amounts(strict) == {1: 10}


def test_batch_that_is_dropped_is_not_asked_for_again(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "home")
    (tmp_path / "in").mkdir()
    glob = f"SetPollingSource\n      fetch: {{kind: FilesGlob, path: '{tmp_path}/in/*.csv'}}"
    node.must("add", manifest(tmp_path, source=glob, share=0.5))
    (tmp_path / "in" / "a.csv").write_text(BAD_BATCH)
    (tmp_path / "in" / "b.csv").write_text("event_time,id,amount\n2020-01-09,9,9\n")
    assert node.run("pull", "orders").code == 7
    assert node.run("pull", "orders").code == 7
    (entry,) = listed(node)
    node.must("quarantine", "drop", "orders", str(entry["entry"]))
    assert listed(node)[0]["batch"]["fate"] == "dropped"
    assert "1 row added" in node.must("pull", "orders").out
    assert amounts(node) == {9: 9}
    assert "up to date" in node.must("pull", "orders").out


def test_resend_that_is_killed_at_any_moment_enters_rows_exactly_once(tmp_path: Path) -> None:
    """kill -9, a little later each time, until the rows are in; then once more."""
    node = RealNode(tmp_path / "home")
    node.must("add", manifest(tmp_path))
    lines = "".join(f"2020-01-01,{number},{-number}\n" for number in range(1, 400))
    ingest(
        node,
        tmp_path,
        f"event_time,id,amount\n2020-01-01,0,1\n{lines * 1}"
        + "".join(f"2020-01-02,{number},1\n" for number in range(1000, 1100)),
    )
    entry = listed(node)[0]["entry"]
    rows = [f"{entry}.{place}" for place in range(1, 400)]
    edited = "_row,event_time,id,amount\n" + "".join(
        f"{row},2020-01-03,{number},1\n" for number, row in enumerate(rows, start=1)
    )
    (tmp_path / "edited.csv").write_text(edited)
    node.must("quarantine", "fix", "orders", "--file", str(tmp_path / "edited.csv"))
    started = time.monotonic()
    _resend(node).wait(timeout=300)
    whole_s = time.monotonic() - started
    assert len(amounts(node)) == 500
    # The first run was the measure. What is killed below stands before the same work.
    second = RealNode(tmp_path / "second")
    second.must("add", manifest(tmp_path))
    ingest(second, tmp_path, (tmp_path / "orders.csv").read_text())
    entry = listed(second)[0]["entry"]
    (tmp_path / "edited.csv").write_text(edited.replace(f"\n{rows[0].split('.')[0]}.", f"\n{entry}."))
    second.must("quarantine", "fix", "orders", "--file", str(tmp_path / "edited.csv"))
    for step in range(8):
        running = _resend(second)
        try:
            running.wait(timeout=whole_s * (0.3 + step * 0.1))
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        found = amounts(second)
        settled = set(states(second, str(entry)).values())
        assert (len(found), settled) in [(101, {"mended"}), (500, {"resent"})]
    second.must("quarantine", "resend", "orders")
    assert len(amounts(second)) == 500
    assert set(states(second, str(entry)).values()) == {"resent"}
    assert second.must("verify", "orders").code == 0


def _resend(node: RealNode) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "odf_node", "quarantine", "resend", "orders"],
        env=environment_of(node.home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
