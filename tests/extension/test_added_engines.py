"""An engine of an external package, one file: it derives, is re-executed, and is named once gone (ENGINE-14)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import environment_of
from support.plug_in_packages import write_package

LOUD = Path(__file__).with_name("loud_engine.py").read_text()
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: ["city STRING"]}
      merge: {kind: Append}
"""
DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: loud.cities
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: cities, alias: c}]
      transform: {kind: Sql, engine: Loud, query: LOUD}
"""


class Program:
    """The program on one home, with or without the package."""

    def __init__(self, folder: Path) -> None:
        self.home, self.site, self.folder = folder / "home", folder / "site", folder
        write_package(self.site, "loud_engine", LOUD, "odf_engines", {"loud": "loud_engine:LoudEngine"})

    def must(self, *words: str | Path, with_package: bool = True) -> str:
        done = self.run(*words, with_package=with_package)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *words: str | Path, with_package: bool = True) -> subprocess.CompletedProcess[str]:
        more = {"PYTHONPATH": str(self.site)} if with_package else {}
        command = [sys.executable, "-m", "odf_node", *words]
        environment = environment_of(self.home, **more)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    program = Program(tmp_path)
    for name, text in (("root", ROOT), ("derivative", DERIVATIVE)):
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "cities.ndjson").write_text('{"city": "Oslo"}\n{"city": "Lima"}\n')
    program.must("add", tmp_path / "root.yaml")
    program.must("ingest", "cities", tmp_path / "cities.ndjson")
    return program


def test_engine_of_a_package_is_one_file_derives_and_is_re_executed(program: Program, tmp_path: Path) -> None:
    listed = json.loads(program.must("engine", "list", "-o", "json"))
    assert {each["name"] for each in listed} == {"arrow", "datafusion", "loud", "spark"}
    (added,) = json.loads(program.must("add", "-o", "json", tmp_path / "derivative.yaml"))
    assert added["grade"]["level"] == "reproducible"
    program.must("pull", "loud.cities")
    rows = json.loads(program.must("sql", "-c", 'SELECT city FROM "loud.cities" ORDER BY "offset"', "-o", "json"))
    assert rows == [{"city": "OSLO"}, {"city": "LIMA"}]
    (finding,) = json.loads(program.must("verify", "loud.cities", "-o", "json"))
    assert (finding["valid"], finding["replayedSteps"]) == (True, 1)

    # The package is gone: what it made is still there, and what is missing is named.
    (finding,) = json.loads(program.must("verify", "--all", "loud.cities", "-o", "json", with_package=False))
    assert finding["replayedSteps"] is None
    assert "'Loud' is not installed" in finding["notChecked"]


def test_engine_is_asked_for_nothing_but_what_it_offers(program: Program, tmp_path: Path) -> None:
    asked = program.run("sql", "--engine", "loud", "-c", "SELECT 1")
    assert asked.returncode == 8
    assert "datafusion" in asked.stderr
    (tmp_path / "other.yaml").write_text(DERIVATIVE.replace("query: LOUD", "query: SELECT 1"))
    rejected = program.run("add", tmp_path / "other.yaml")
    assert rejected.returncode == 7
    assert "the only query is LOUD" in rejected.stderr
    assert "loud.cities" not in program.must("list")


def test_engine_that_cannot_be_loaded_is_named_and_leaves_the_others_alone(tmp_path: Path) -> None:
    program = Program(tmp_path)
    (module,) = program.site.glob("loud_engine*/__init__.py")
    module.write_text("raise RuntimeError('no such library')\n")
    (tmp_path / "root.yaml").write_text(ROOT)
    (tmp_path / "loud.yaml").write_text(DERIVATIVE)

    reported = program.run("doctor")
    program.must("add", tmp_path / "root.yaml")
    rejected = program.run("add", tmp_path / "loud.yaml")

    assert "Traceback" not in reported.stderr
    assert "engine loud of the package loud-engine cannot be loaded: RuntimeError: no such library" in reported.stdout
    assert "arrow" in reported.stdout
    assert (rejected.returncode, "engine loud of the package" in rejected.stderr) == (8, True)
    assert "Traceback" not in rejected.stderr
    assert "datafusion" in program.must("engine", "list")
