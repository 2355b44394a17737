"""What external packages add to commands of the core, engines from files, and ``doctor`` (CMD-3, PLUG-22, PLUG-23)."""

import json
import subprocess
import sys
from pathlib import Path

from support.command_line import environment_of
from support.plug_in_packages import write_package

BENCH = '''"""An action of ``engine``, one that the command has already, and one of the wheel's."""

from odf_node.cli.actions import CommandActions
from odf_node.cli.parsing import add_output_format


def configure(name, parser):
    parser.add_argument("rows", type=int)


def run(context, arguments):
    context.console.line(f"{arguments.action} over {arguments.rows} rows")
    return 0


BENCH = CommandActions(
    {"bench": "try an engine", "list": "list nothing", "add": "add nothing"}, ("engine bench 10",), configure, run
)
'''
FILES = '''"""One engine that was added and cannot be read."""

from pathlib import Path

from odf_node.engines.files import EngineFilesPlugIn
from odf_node.ports.engines import DamagedEngine

LOST = DamagedEngine(name="lost", digest="", place=Path("/nowhere"), found="it is lost")


class Files:
    def find(self, name):
        return [LOST] if name == "lost" else []

    def list(self):
        return [LOST]


FILES = EngineFilesPlugIn(lambda home: Files())
'''
CHECK = '''"""Says whether the home has a name of one letter."""

from odf_node.machine import MachineCheck, MachineFinding


def examine(folder):
    yield MachineFinding("letter", len(folder.name) == 1, folder.name, "call it h")


CHECK = MachineCheck(examine)
'''


def run(home: Path, site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odf_node", *words]
    environment = environment_of(home, PYTHONPATH=str(site))
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_package_adds_an_action_to_a_command_and_takes_none_of_its_own(tmp_path: Path) -> None:
    """CMD-3."""
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_bench", BENCH, "odf_node.actions", {"engine.bench": "odf_bench:BENCH"})
    ran = run(home, site, "engine", "bench", "7")
    assert (ran.returncode, ran.stdout) == (0, "bench over 7 rows\n")
    assert "datafusion" in run(home, site, "engine", "list").stdout
    assert "engine bench 10" in run(home, site, "help", "engine").stdout
    assert "try an engine" in run(home, site, "engine", "--help").stdout
    assert "add nothing" not in run(home, site, "engine", "add", "--help").stdout


def test_broken_action_of_a_package_is_left_out_and_named(tmp_path: Path) -> None:
    """CMD-3: the command works without it."""
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_bench", "import nowhere_at_all\n", "odf_node.actions", {"engine.bench": "odf_bench:BENCH"})
    assert "datafusion" in run(home, site, "engine", "list").stdout
    assert run(home, site, "engine", "bench", "7").returncode == 2
    (row,) = json.loads(run(home, site, "status", "-o", "json").stdout)
    assert row["what"].startswith("plug-in 'engine.bench' of package 'odf-bench' cannot be used")


def test_package_brings_engines_from_files(tmp_path: Path) -> None:
    """PLUG-22: beside those of this wheel."""
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_lost", FILES, "odf_node.engine_files", {"lost": "odf_lost:FILES"})
    rows = {each["name"]: each for each in json.loads(run(home, site, "engine", "list", "-o", "json").stdout)}
    assert "it is lost" in rows["lost"]["damage"]
    assert not rows["datafusion"]["damage"]


def test_package_adds_lines_to_doctor(tmp_path: Path) -> None:
    """PLUG-23."""
    site = tmp_path / "site"
    write_package(site, "odf_letters", CHECK, "odf_node.machine", {"letters": "odf_letters:CHECK"})
    for name, is_good in {"h": True, "home": False}.items():
        found = json.loads(run(tmp_path / name, site, "doctor", "-o", "json").stdout)
        (line,) = [each for each in found if each["what"] == "letter"]
        assert (line["ok"], line["found"]) == (is_good, name)
