"""``--dry-run`` of what takes data in: the same words as the deed, and nothing is kept (ING-25)."""

import json
from functools import partial
from pathlib import Path

import pytest

from support import command_line

pytestmark = pytest.mark.usefixtures("light_engines")

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
        "log: first rows as read:",
        '  {"event_time": "2024-01-01T00:00:00Z", "n": 1}',
        '  {"event_time": "2024-01-02T00:00:00Z", "n": 2}',
        "log: first rows as they would be written:",
        *shown.stdout.splitlines()[4:6],
        "log: first rows that would be rejected:",
        "  line 4: n: not a whole number; as sent: 2024-01-03T00:00:00Z,x",
        "log: 2 rows would be added",
        "log: 1 row could not be taken: would be kept aside (1 row: n: not a whole number (first 'x' in line 4))",
    ]
    assert json.loads(shown.stdout.splitlines()[5])["n"] == 2
    assert contents(home) == before
    done = run_command(home, "ingest", "log", tmp_path / "a.csv")
    assert done.stdout.startswith("log: 2 rows added, block ")
    assert contents(home) != before


def test_dry_run_of_a_file_that_would_be_rejected_says_so_and_keeps_no_quarantine(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BAD)
    before = contents(home)
    shown = run_command(home, "ingest", "log", tmp_path / "a.csv", "--dry-run")
    assert shown.returncode == 7
    assert "none of 2 rows" in shown.stderr
    assert "  line 3: n: not a whole number; as sent: 2024-01-02T00:00:00Z,b" in shown.stdout.splitlines()
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
    assert [(each["stage"], len(each["rows"])) for each in report["samples"]] == [
        ("read", 2), ("written", 2), ("refused", 1),
    ]  # fmt: skip
    assert contents(home) == before
    (report,) = json.loads(run_command(home, "pull", "log", "-o", "json").stdout)
    assert (report["newRows"], report["dryRun"]) == (4, False)


STAGES = """kind: DatasetSnapshot
version: 1
content:
  name: log
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: [day STRING, n BIGINT]}
      preprocess: {kind: Sql, engine: datafusion, query: 'SELECT event_time, n * 2 AS double FROM input'}
      merge: {kind: Append}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              converters:
                - {kind: Rename, columns: {day: event_time}}
                - {kind: Cast, column: event_time, type: TIMESTAMP, formats: ["%d.%m.%Y"]}
              validators:
                - {kind: Range, column: double, most: 9}
"""


def test_dry_run_shows_the_first_rows_behind_each_stage_and_keeps_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "m.yaml").write_text(STAGES)
    assert run_command(home, "add", tmp_path / "m.yaml").returncode == 0
    lines = "".join(f"{day:02}.01.2024,{n}\n" for day, n in enumerate([1, 1, 4, 5, 2, 3], start=1))
    (tmp_path / "a.csv").write_text(f"day,n\n{lines}soon,1\n")
    before = contents(home)
    done = run_command(home, "ingest", "log", tmp_path / "a.csv", "--dry-run", "-o", "json")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    samples = {each["stage"]: each["rows"] for each in report["samples"]}
    assert [*samples] == ["read", "converted", "queried", "written", "refused"]
    assert samples["read"][0] == {"day": "01.01.2024", "n": 1}
    assert samples["converted"][0] == {"event_time": "2024-01-01T00:00:00Z", "n": 1}
    assert samples["queried"][2] == {"event_time": "2024-01-03T00:00:00Z", "double": 8}
    assert [(row["op"], row["double"]) for row in samples["written"]] == [(0, 2), (0, 2), (0, 8)]
    assert sorted(error["code"] for row in samples["refused"] for error in row["errors"]) == ["form", "range"]
    assert contents(home) == before
