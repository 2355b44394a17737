"""A rule of an external package that holds an input back, in the real command line (PLUG-28, PLAN-21)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import environment_of
from support.plug_in_packages import write_package

MANIFESTS = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: ["event_time TIMESTAMP", "city STRING"]}
      merge: {kind: Append}
---
kind: DatasetSnapshot
version: 1
content:
  name: shown
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: cities, alias: c}]
      transform: {kind: Sql, engine: datafusion, query: 'SELECT event_time, city FROM c'}
"""
RULE = '''"""Holds everything behind the block that a file names."""

import os
from pathlib import Path

from odf_node.derive.holding import HoldRule, InputHold


def judge(home, engines, consumer, source):
    Path(os.environ["NOTES"]).write_text(f"{consumer.name} reads {source.name}")


def find(home, consumer, source):
    upto = int(os.environ["UPTO"])
    return None if upto < 0 else InputHold(source.name, upto, "a strike", "ask the union", "FAILS" in os.environ)


RULE = HoldRule(lambda home: True, judge, find)
'''

JUDGING_RULE = '''"""Holds what was not judged; another process commits right after the first look at what is held."""

import os
import subprocess
import sys
from pathlib import Path

from odf_node.derive.holding import HoldRule, InputHold

JUDGED = Path(os.environ["NOTES"])


def judge(home, engines, consumer, source):
    JUDGED.write_text(str(home.store.get_head(source.id).sequence_number))


def find(home, consumer, source):
    if not JUDGED.exists():
        return None
    upto, newest = int(JUDGED.read_text()), home.store.get_head(source.id).sequence_number
    late = Path(os.environ["LATE"])
    if late.exists():
        file = late.rename(late.with_suffix(".csv"))
        subprocess.run([sys.executable, "-m", "odf_node", "ingest", "cities", str(file)], check=True)
    return None if newest <= upto else InputHold(source.name, upto, "not judged", "pull")


RULE = HoldRule(lambda home: True, judge, find)
'''


class Program:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"

    def run(self, *words: str | Path, upto: int, **variables: str) -> subprocess.CompletedProcess[str]:
        more = {"PYTHONPATH": str(self.site), "UPTO": str(upto), "NOTES": str(self.folder / "notes"), **variables}
        return subprocess.run(
            [sys.executable, "-m", "odf_node", *words],
            env=environment_of(self.folder / "home", **more),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def list_cities(self) -> list[str]:
        asked = self.run("sql", "-c", "SELECT city FROM shown ORDER BY city", "-o", "json", upto=-1)
        return [each["city"] for each in json.loads(asked.stdout)]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    found = Program(tmp_path)
    write_package(found.site, "odf_strike", RULE, "odf_node.holds", {"strike": "odf_strike:RULE"})
    (tmp_path / "manifests.yaml").write_text(MANIFESTS)
    assert found.run("add", tmp_path / "manifests.yaml", upto=-1).returncode == 0
    for city in ("Lima", "Oslo"):
        (tmp_path / f"{city}.csv").write_text(f"event_time,city\n2024-01-01T00:00:00Z,{city}\n")
        ingested = found.run("ingest", "cities", tmp_path / f"{city}.csv", upto=-1)
        assert ingested.returncode == 0, ingested.stderr
    return found


def test_rule_of_a_package_holds_an_input_back_until_it_does_not(program: Program) -> None:
    held = program.run("pull", "shown", upto=3)
    assert held.returncode == 0, held.stderr
    assert "keeps to block 3 of cities: a strike: ask the union" in held.stdout
    assert (program.folder / "notes").read_text() == "shown reads cities"
    assert program.list_cities() == ["Lima"]
    again = program.run("pull", "shown", upto=3)
    assert "up to date" in again.stdout
    status = json.loads(program.run("status", "-o", "json", upto=3).stdout)
    assert [each["command"] for each in status] == ["ask the union"]
    assert program.run("pull", "shown", upto=-1).returncode == 0
    assert program.list_cities() == ["Lima", "Oslo"]


def test_rule_of_a_package_fails_the_pull(program: Program) -> None:
    failed = program.run("pull", "shown", upto=3, FAILS="1")
    assert failed.returncode == 4
    assert "'shown' keeps to block 3 of cities: a strike: ask the union" in failed.stderr
    assert program.list_cities() == ["Lima"]


def test_broken_rule_of_a_package_is_named_and_holds_nothing(program: Program) -> None:
    """PLUG-3."""
    assert program.run("pull", "shown", upto=3, UPTO="no number").returncode == 0
    assert program.list_cities() == ["Lima", "Oslo"]


def test_block_that_comes_after_what_is_held_was_found_waits(program: Program) -> None:
    """PLAN-21: what a step reads was judged, also where another process commits in between."""
    (program.site / "odf_strike" / "__init__.py").write_text(JUDGING_RULE)
    late = program.folder / "late"
    late.write_text("event_time,city\n2024-01-01T00:00:00Z,Rom\n")
    pulled = program.run("pull", "shown", upto=-1, LATE=str(late))
    assert pulled.returncode == 0, pulled.stderr
    assert not late.exists()
    assert "keeps to block 4 of cities: not judged" in pulled.stdout
    asked = ("sql", "-c", "SELECT city FROM shown ORDER BY city", "-o", "json")
    shown = json.loads(program.run(*asked, upto=-1, LATE=str(late)).stdout)
    assert [each["city"] for each in shown] == ["Lima", "Oslo"]
    assert program.run("pull", "shown", upto=-1, LATE=str(late)).returncode == 0
    shown = json.loads(program.run(*asked, upto=-1, LATE=str(late)).stdout)
    assert [each["city"] for each in shown] == ["Lima", "Oslo", "Rom"]
