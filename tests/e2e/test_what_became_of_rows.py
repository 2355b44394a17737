"""Every row of an ingest is counted by what became of it (ING-46), and what a snapshot lacks is asked for (ING-47)."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.composition import open_node
from odf_node.daemon.gauges import make_metrics
from support.command_line import run_command

pytestmark = pytest.mark.usefixtures("light_engines")

LIST = """kind: DatasetSnapshot
version: 1
content:
  name: prices
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: [day DATE, item STRING, price BIGINT]}
      merge: {kind: Snapshot, primaryKey: [item]}
    - kind: SetVocab
      eventTimeColumn: day
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: "largestRetractedShare: 0.2"
"""
COUNTS = ("addedRows", "correctedRows", "retractedRows", "unchangedRows", "quarantinedRows")


def counts_of(text: str) -> tuple[int, ...]:
    (report,) = json.loads(text)
    return tuple(report[each] for each in COUNTS)


def write_list(path: Path, items: range, **prices: str) -> Path:
    lines = (f"2024-01-01,i{n},{prices.get(f'i{n}', n)}\n" for n in items)
    path.write_text("day,item,price\n" + "".join(lines))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "m.yaml").write_text(LIST)
    home = tmp_path / "home"
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    done = run_command(home, "ingest", "prices", write_list(tmp_path / "first.csv", range(10)))
    assert done.stdout.startswith("prices: 10 rows added, block ")
    return home


def test_log_and_metrics_say_what_became_of_rows_stage_6(home: Path, tmp_path: Path) -> None:
    path = write_list(tmp_path / "second.csv", range(2, 12), i3="99", i11="x")
    run_command(home, "ingest", "prices", path)
    (newest,) = map(json.loads, run_command(home, "log", "prices", "-n", "1", "-o", "json").stdout.splitlines())
    assert [newest["rows"][name] for name in COUNTS] == [1, 1, 2, 7, 1]
    reported = run_command(home, "log", "prices", "-n", "1", "-o", "oneline").stdout
    assert "1 row added, 1 corrected, 2 retracted, 7 unchanged, 1 quarantined" in " ".join(reported.split())
    with closing(open_node(home)) as node:
        figures = make_metrics(node).render()
    for rows, count in (("added", 1), ("corrected", 1), ("retracted", 2), ("unchanged", 7), ("quarantined", 1)):
        assert f'odf_node_ingest_rows{{dataset="prices",rows="{rows}"}} {count}' in figures


def test_ingest_and_its_dry_run_say_the_same_of_each_row(home: Path, tmp_path: Path) -> None:
    path = write_list(tmp_path / "second.csv", range(2, 12), i3="99", i11="x")
    words = ("ingest", "prices", path, "-o", "json")
    would = counts_of(run_command(home, *words, "--dry-run").stdout)
    assert would == counts_of(run_command(home, *words).stdout) == (1, 1, 2, 7, 1)
    shown = run_command(home, "ingest", "prices", write_list(tmp_path / "third.csv", range(2, 11), i3="99"))
    assert shown.stdout == "prices: up to date (9 rows unchanged)\n"
    audit = run_command(home, "inspect", "audit", "-o", "json").stdout
    assert "1 row added, 1 corrected, 2 retracted, 7 unchanged, from " in audit


def test_snapshot_that_would_retract_much_is_held_until_it_is_let_pass(home: Path, tmp_path: Path) -> None:
    before = run_command(home, "log", "prices").stdout
    path = write_list(tmp_path / "cut.csv", range(7))
    for more in (["--dry-run"], []):
        held = run_command(home, "ingest", "prices", path, *more)
        assert held.returncode == 7
        assert (
            "it lacks 3 of 10 current rows, which would be retracted; largestRetractedShare allows 0.2" in held.stderr
        )
    assert "'odf-node quarantine resend prices ENTRY --release' lets it pass" in held.stderr
    assert run_command(home, "log", "prices").stdout == before
    assert "prices" in run_command(home, "status").stdout
    passed = run_command(home, "quarantine", "resend", "prices", "1", "--release")
    assert "3 rows retracted, 7 unchanged" in passed.stdout
    assert run_command(home, "ingest", "prices", write_list(tmp_path / "c.csv", range(1, 7))).returncode == 0


def test_log_is_not_taken_for_a_list_of_all_that_is_true(tmp_path: Path) -> None:
    home, source = tmp_path / "home", tmp_path / "log.ndjson"

    def write_day(day: int, count: int) -> None:
        times = (f"2024-01-{day:02}T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z" for n in range(0, 10 * count, 10))
        lines = (json.dumps({"ts": at, "level": "INFO", "msg": f"{day} {n}"}) for n, at in enumerate(times))
        source.write_text("\n".join(lines) + "\n")

    write_day(1, 5_000)
    assert run_command(home, "new", "log", "--from", source, "-o", tmp_path / "m.yaml").returncode == 0
    assert "merge: {kind: Append}" in (tmp_path / "m.yaml").read_text()
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    assert counts_of(run_command(home, "ingest", "log", source, "-o", "json").stdout) == (5_000, 0, 0, 0, 0)
    write_day(2, 200)
    words = ("ingest", "log", source, "-o", "json")
    assert counts_of(run_command(home, *words, "--dry-run").stdout) == (200, 0, 0, 0, 0)
    assert counts_of(run_command(home, *words).stdout) == (200, 0, 0, 0, 0)
    last = json.loads(run_command(home, "tail", "log", "-n", "1", "-o", "ndjson").stdout)
    assert last["msg"] == "2 199"
