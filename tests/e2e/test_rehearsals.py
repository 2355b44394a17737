"""``--dry-run`` of what takes data in: the same words as the deed, and nothing is kept (ING-25)."""

import json
from functools import partial
from pathlib import Path

import pytest

from support import command_line

run_command = partial(command_line.run_command, has_engine=True)

MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: log
  kind: Root
  metadata:
    - kind: {source}
      read: {{kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, n BIGINT]}}
      merge: {{kind: Append}}
"""
PUSHED = MANIFEST.format(source="AddPushSource\n      sourceName: default")
GOOD = "event_time,n\n2024-01-01T00:00:00Z,1\n2024-01-02T00:00:00Z,2\n2024-01-03T00:00:00Z,x\n"
BAD = "event_time,n\n2024-01-01T00:00:00Z,a\n2024-01-02T00:00:00Z,b\n"


def contents(home: Path) -> dict[str, bytes]:
    """What counts: objects, keys, and what the database says (not its log, which reading folds)."""
    kept = {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file() and "objects" in p.parts}
    for words in (["log", "log", "--all"], ["inspect", "audit", "log"], ["quarantine", "list", "log"], ["list"]):
        done = run_command(home, *words)
        kept[" ".join(words)] = (done.stdout + done.stderr).encode()
    return kept


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "m.yaml").write_text(PUSHED)
    assert run_command(tmp_path / "home", "add", tmp_path / "m.yaml").returncode == 0
    return tmp_path / "home"


def test_dry_run_of_an_ingest_counts_good_and_bad_rows_and_keeps_none(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    before = contents(home)
    shown = run_command(home, "ingest", "log", tmp_path / "a.csv", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == [
        "log: 2 rows would be ingested",
        "log: 1 row could not be taken: would be kept aside (1 row: n: not a whole number (first 'x' in line 4))",
    ]
    assert contents(home) == before
    done = run_command(home, "ingest", "log", tmp_path / "a.csv")
    assert done.stdout.startswith("log: 2 rows ingested, block ")
    assert contents(home) != before


def test_dry_run_of_a_file_that_would_be_refused_says_so_and_keeps_no_quarantine(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BAD)
    before = contents(home)
    shown = run_command(home, "ingest", "log", tmp_path / "a.csv", "--dry-run")
    assert shown.returncode == 7
    assert "none of 2 rows" in shown.stderr
    assert "nothing of it would be" in shown.stderr
    assert "quarantine show" not in shown.stderr
    assert contents(home) == before


def test_dry_run_of_a_poll_fetches_and_keeps_nothing(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.csv").write_text(GOOD)
    source = f"SetPollingSource\n      fetch: {{kind: FilesGlob, path: '{tmp_path}/*.csv'}}"
    (tmp_path / "m.yaml").write_text(MANIFEST.format(source=source))
    home = tmp_path / "home"
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    before = contents(home)
    shown = run_command(home, "pull", "log", "--dry-run", "-o", "json")
    assert shown.returncode == 0, shown.stderr
    (report,) = json.loads(shown.stdout)
    assert (report["newRows"], report["quarantinedRows"], report["hasMore"], report["dryRun"]) == (2, 1, True, True)
    assert contents(home) == before
    (report,) = json.loads(run_command(home, "pull", "log", "-o", "json").stdout)
    assert (report["newRows"], report["dryRun"]) == (4, False)
