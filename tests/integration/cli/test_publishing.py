"""What ``publish --off`` hides, and what it says goes on."""

from pathlib import Path

import pytest

from support.command_line import run_command

ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [event_time TIMESTAMP, name STRING]}
      merge: {kind: Append}
"""
DERIVED = """\
---
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: INPUT, alias: input}]
      transform:
        kind: Sql
        engine: datafusion
        query: SELECT event_time, name FROM input
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    chain = [("cities.upper", "cities"), ("cities.top", "cities.upper"), ("cities.own", "cities")]
    manifests = ROOT + "".join(DERIVED.replace("NAME", name).replace("INPUT", source) for name, source in chain)
    (tmp_path / "all.yaml").write_text(manifests)
    assert run_command(tmp_path / "home", "add", tmp_path / "all.yaml").returncode == 0
    assert run_command(tmp_path / "home", "publish", "--off", "cities.own").returncode == 0
    return tmp_path / "home"


def test_hiding_an_input_names_what_is_derived_from_it_and_still_served(home: Path) -> None:
    reported = run_command(home, "publish", "--off", "cities")

    assert "cities is no longer served to others" in reported.stdout
    assert "derived from what is hidden now: cities.top, cities.upper;" in reported.stderr
    assert "odf-node publish --off cities.top cities.upper" in reported.stderr


def test_hiding_what_nothing_served_is_derived_from_says_no_more(home: Path) -> None:
    reported = run_command(home, "publish", "--off", "cities", "cities.top", "cities.upper")

    assert "still served" not in reported.stderr
