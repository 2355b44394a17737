"""A merge strategy of an external package, one file, in the real command line and sandbox (ING-56)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import environment_of
from support.plug_in_packages import write_package

GROUP = "odf_merge_strategies"
KEEP_MISSING = Path(__file__).with_name("keep_missing_strategy.py").read_text()
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: prices
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: ["item STRING", "price INT"]}
      merge: {kind: Snapshot, primaryKey: [item]}
    - kind: SetAttachments
      attachments:
        kind: Embedded
        items:
          - path: odf-node/ingest.yaml
            content: |
              merge: {kind: KeepMissing, version: "1"}
"""


class Program:
    """The program with what is installed in a folder, on one home."""

    def __init__(self, folder: Path) -> None:
        self.home, self.folder, self.site = folder / "home", folder, folder / "site"

    def install(self, program: str) -> None:
        write_package(self.site, "odf_keep_missing", program, GROUP, {"KeepMissing": "odf_keep_missing:KeepMissing"})

    def add(self, manifest: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "prices.yaml").write_text(manifest)
        return self.run("add", self.folder / "prices.yaml")

    def ingest(self, *rows: dict[str, object], site: Path | None = None) -> subprocess.CompletedProcess[str]:
        batch = self.folder / "batch.ndjson"
        batch.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return self.run("ingest", "prices", batch, site=site)

    def list_changes(self) -> list[tuple[int, str, int]]:
        found = json.loads(self.run("tail", "prices", "-o", "json").stdout)
        return [(row["op"], row["item"], row["price"]) for row in found]

    def run(self, *words: str | Path, site: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = environment_of(self.home, PYTHONPATH=str(site or self.site))
        command = [sys.executable, "-m", "odf_node", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_strategy_of_a_package_is_one_file_and_merges_in_the_sandbox(program: Program) -> None:
    program.install(KEEP_MISSING)
    added = program.add(MANIFEST)
    assert added.returncode == 0, added.stderr

    first = program.ingest({"item": "nail", "price": 1}, {"item": "saw", "price": 30})
    assert first.returncode == 0, first.stderr
    second = program.ingest({"item": "saw", "price": 31}, {"item": "vice", "price": 50})
    assert second.returncode == 0, second.stderr

    assert program.list_changes() == [(0, "nail", 1), (0, "saw", 30), (2, "saw", 30), (3, "saw", 31), (0, "vice", 50)]
    assert program.run("verify", "prices").returncode == 0


@pytest.mark.parametrize(
    ("found", "instead", "expected"),
    [
        ("kind: KeepMissing", "kind: KeepMising", "did you mean 'KeepMissing'?"),
        ('version: "1"', 'version: "2"', "version of merge strategy KeepMissing"),
        (', version: "1"', "", "merge.version"),
        ('version: "1"', 'version: "1", key: item', "merge.key"),
        ("kind: Snapshot, primaryKey", "kind: Ledger, primaryKey", "beside sources that merge by Snapshot"),
    ],
)
def test_what_cannot_be_followed_is_rejected_with_its_place(
    program: Program, found: str, instead: str, expected: str
) -> None:
    program.install(KEEP_MISSING)
    rejected = program.add(MANIFEST.replace(found, instead))
    assert rejected.returncode == 7, rejected.stderr
    assert expected in rejected.stderr
    assert "prices" not in program.run("list").stdout


def test_dataset_whose_strategy_is_gone_or_another_is_kept_and_takes_nothing(program: Program, tmp_path: Path) -> None:
    program.install(KEEP_MISSING)
    assert program.add(MANIFEST).returncode == 0
    assert program.ingest({"item": "nail", "price": 1}).returncode == 0
    other = Program(tmp_path / "other")
    other.folder.mkdir()
    other.install(KEEP_MISSING.replace('version = "1"', 'version = "2"'))

    for site, words in ((tmp_path / "nothing", "KeepMissing"), (other.site, "version of merge strategy KeepMissing")):
        taken = program.ingest({"item": "saw", "price": 30}, site=site)
        assert taken.returncode == 8, taken.stderr
        assert words in taken.stderr
        assert "Traceback" not in taken.stderr
    assert program.list_changes() == [(0, "nail", 1)]


@pytest.mark.parametrize(
    ("found", "instead", "expected"),
    [
        (
            "return rows.compare(parameters.compare_columns, retracts_missing=False)",
            "return 1 / 0",
            "ZeroDivisionError",
        ),
        ("retracts_missing=False)", "retracts_missing=True)", "does not say that it retracts"),
        ("rows.compare(parameters.compare_columns, retracts_missing=False)", "rows.append_unknown()", "by keys"),
    ],
)
def test_strategy_that_breaks_its_word_fails_the_batch_by_its_name(
    program: Program, found: str, instead: str, expected: str
) -> None:
    program.install(KEEP_MISSING.replace(found, instead))
    assert program.add(MANIFEST).returncode == 0
    failed = program.ingest({"item": "nail", "price": 1})
    assert failed.returncode != 0
    assert expected in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "KeepMissing" in failed.stderr


def test_strategy_that_says_other_things_of_its_columns_than_odf_is_rejected(program: Program) -> None:
    program.install(KEEP_MISSING.replace('    version = "1"', '    version = "1"\n    takes_operation = True'))
    rejected = program.add(MANIFEST)
    assert rejected.returncode == 7
    assert "its takes_operation is another one than that of Snapshot" in rejected.stderr
