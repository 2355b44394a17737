"""Observers of runs of external packages, in the real command line (PLUG-12)."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import environment_of
from support.plug_in_packages import write_package

EXAMPLE = Path(__file__).parents[2] / "examples" / "own-csv"
PROGRAM = '''"""Appends what ran to the file that the environment names."""

from contextlib import contextmanager

from odf_node.adapters.observing import ObserverKind


class Lines:
    counts = {}

    def __init__(self, path):
        self.path = path

    @contextmanager
    def observing(self, run):
        yield run
        with open(self.path, "a") as file:
            file.write(f"{run.kind} {run.dataset.name} {run.rows}\\n")

    def flush(self):
        pass


def find_target(settings, environment):
    return environment.get("RUNS_FILE")


def open_lines(settings, environment):
    return Lines(environment["RUNS_FILE"])


LINES = ObserverKind("runs", find_target, open_lines)
'''
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: ["city STRING"]}
      merge: {kind: Append}
"""


def ingest(tmp_path: Path, program: str) -> subprocess.CompletedProcess[str]:
    site = tmp_path / "site"
    write_package(site, "odf_lines", program, "odf_node.observers", {"lines": "odf_lines:LINES"})
    (tmp_path / "cities.yaml").write_text(MANIFEST)
    (tmp_path / "cities.csv").write_text("city\nLima\nOslo\n")
    environment = environment_of(tmp_path / "home", PYTHONPATH=str(site), RUNS_FILE=str(tmp_path / "runs"))
    for words in (("add", "cities.yaml"), ("ingest", "cities", "cities.csv")):
        command = [sys.executable, "-m", "odf_node", *words]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
    return done


def test_observer_of_a_package_hears_of_runs(tmp_path: Path) -> None:
    ingest(tmp_path, PROGRAM)
    assert (tmp_path / "runs").read_text() == "ingest cities 2\n"


@pytest.mark.parametrize("broken", ['environment["RUNS_FILE"])', 'environment.get("RUNS_FILE")'])
def test_observer_that_cannot_be_opened_stops_no_work(tmp_path: Path, broken: str) -> None:
    ingest(tmp_path, PROGRAM.replace(broken, "no_such_name"))
    assert not (tmp_path / "runs").exists()
