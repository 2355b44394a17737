"""Rows that are pushed under a key are taken once (``spec/pushed-rows.md``)."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE

import pytest

from support.nodes import RanCommand, RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: readings
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, n BIGINT]}
      merge: {kind: Append}
"""
GOOD = "event_time,n\n2024-01-01T00:00:00Z,1\n2024-01-02T00:00:00Z,x\n"
BAD = GOOD.replace("x", "y")


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    node = RealNode(tmp_path / "home")
    (tmp_path / "readings.yaml").write_text(MANIFEST)
    node.must("add", str(tmp_path / "readings.yaml"))
    return node


def ingest(node: RealNode, rows: str, *words: str, name: str = "readings") -> dict:
    (report,) = node_run(node, rows, *words, name=name).json()
    del report["stages"]
    return report


def node_run(node: RealNode, rows: str, *words: str, name: str = "readings") -> RanCommand:
    return node.run("ingest", name, "--stdin", "-o", "json", *words, standard_input=rows)


def state(node: RealNode, name: str = "readings") -> tuple[str, str]:
    return node.must("log", name).out, node.must("quarantine", "list", name).out


def test_same_rows_under_a_key_are_taken_once_and_answered_alike(node: RealNode) -> None:
    """Clauses FEED-1 and FEED-2."""
    first = ingest(node, GOOD, "--key", "monday")
    assert (first["newRows"], first["quarantinedRows"], first["repeated"]) == (1, 1, False)
    other = ingest(node, GOOD, "--key", "tuesday")  # another key: the rows are another batch
    assert other["newRows"] == 1
    before = state(node)
    assert ingest(node, GOOD, "--key", "monday") == first | {"repeated": True}
    assert state(node) == before
    shown = node.run("ingest", "readings", "--stdin", "--key", "monday", standard_input=GOOD).out
    assert "sent before under this key" in shown
    assert "1 row added" in shown
    assert "1 row could not be taken" in shown


def test_other_rows_or_another_way_under_a_key_are_rejected(node: RealNode) -> None:
    """Clause FEED-2."""
    ingest(node, GOOD, "--key", "monday")
    before = state(node)
    for rows, words in ((GOOD + "2024-01-03T00:00:00Z,3\n", ()), (GOOD, ("--event-time", "2024-01-01T00:00:00Z"))):
        ran = node_run(node, rows, "--key", "monday", *words)
        assert ran.code == 4
        assert "under the key 'monday' before; nothing was done" in ran.err
    assert state(node) == before


def test_rows_of_which_none_is_taken_are_set_aside_once(node: RealNode) -> None:
    """Clause FEED-1: there is no block, and the key is kept with the quarantine."""
    ledger = MANIFEST.replace("kind: Append", "kind: Ledger, primaryKey: [n]").replace("readings", "ledger")
    (node.home.parent / "ledger.yaml").write_text(ledger)
    node.must("add", str(node.home.parent / "ledger.yaml"))
    ingest(node, GOOD, name="ledger")
    first = ingest(node, BAD, "--key", "bad", name="ledger")
    assert (first["newBlocks"], first["quarantinedRows"]) == (0, 1)
    before = state(node, "ledger")
    assert ingest(node, BAD, "--key", "bad", name="ledger") == first | {"repeated": True}
    assert state(node, "ledger") == before


def test_what_took_nothing_leaves_the_key_free(node: RealNode) -> None:
    """Clause FEED-2."""
    assert node_run(node, "a,b\n1,2\n", "--key", "monday").code == 7
    assert ingest(node, GOOD, "--key", "monday")["newRows"] == 1


@pytest.mark.parametrize("key", ["", "k" * 256, "k" * 100_000, "with\nline", "ключ"])
def test_key_that_is_none_is_rejected_and_nothing_is_taken(node: RealNode, key: str) -> None:
    """Clause FEED-1."""
    before = state(node)
    ran = node_run(node, GOOD, f"--key={key}")
    assert ran.code == 2
    assert len(ran.err) < 500
    assert state(node) == before


def test_key_is_for_one_file_that_is_taken_in(node: RealNode, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(GOOD)
    before = state(node)
    for words in (("rows.csv", "rows.csv"), ("rows.csv", "--dry-run")):
        paths = [str(tmp_path / each) if each.endswith("csv") else each for each in words]
        assert node.run("ingest", "readings", *paths, "--key", "k").code == 2
    assert state(node) == before
    assert json.loads(node.must("ingest", "readings", str(tmp_path / "rows.csv"), "--key", "k", "-o", "json").out)


def send_at_once(node: RealNode, rows: str, *keys: str) -> list[dict]:
    """Send the same rows by as many processes as there are keys."""
    command = [
        sys.executable,
        "-m",
        "odf_node",
        "--home",
        str(node.home),
        "ingest",
        "readings",
        "--stdin",
        "-o",
        "json",
    ]
    senders = [
        subprocess.Popen([*command, *(("--key", key) if key else ())], stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
        for key in keys
    ]
    with ThreadPoolExecutor(len(senders)) as pool:
        stated = [*pool.map(lambda sender: sender.communicate(rows), senders)]
    assert [sender.returncode for sender in senders] == [0] * len(senders), stated
    return [json.loads(out)[0] for out, _ in stated]


def test_senders_of_one_key_at_once_are_answered_alike(node: RealNode) -> None:
    """FEED-2: one does it, the others are answered by what it did."""
    reports = send_at_once(node, GOOD, *["monday"] * 4)
    assert sorted(report["repeated"] for report in reports) == [False, True, True, True]
    assert {report["head"] for report in reports} == {reports[0]["head"]}
    assert json.loads(node.must("sql", "-c", "SELECT count(*) AS n FROM readings", "-o", "json").out) == [{"n": 1}]


def test_senders_without_a_key_at_once_have_all_their_rows_in(node: RealNode) -> None:
    """FEED-2: another writer was faster, and the rows are taken in behind its block; no rule of chains is broken."""
    reports = send_at_once(node, GOOD, *[""] * 4)
    assert len({report["head"] for report in reports}) == 4
    assert json.loads(node.must("sql", "-c", "SELECT count(*) AS n FROM readings", "-o", "json").out) == [{"n": 4}]
