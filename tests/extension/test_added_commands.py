"""Commands of external packages, each one file, in the real command line (CMD-1, CMD-2)."""

import json
import subprocess
import sys
from pathlib import Path

from support.command_line import environment_of
from support.plug_in_packages import write_package

GROUP = "odf_node.commands"
COUNT = Path(__file__).with_name("count_command.py").read_text()
MANIFEST = Path(__file__).parents[2] / "examples" / "own-csv" / "prices.yaml"


def run(home: Path, site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the program with what is installed in ``site``."""
    environment = environment_of(home, PYTHONPATH=str(site))
    command = [sys.executable, "-m", "odf_node", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_command_of_a_package_is_one_file_and_works_as_ours_do(tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_count", COUNT, GROUP, {"count": "odf_count"})
    assert run(home, site, "add", MANIFEST).returncode == 0

    counted = run(home, site, "count", "prices", "-o", "json", "--home", home)
    assert (counted.returncode, counted.stderr) == (0, "")
    (found,) = json.loads(counted.stdout)
    assert found["dataset"] == "prices"
    assert found["blocks"] > 1

    assert "\n  count       show how many blocks datasets have\n" in run(home, site, "--help").stdout
    explained = run(home, site, "help", "count").stdout
    assert explained.startswith("usage: odf-node count ")
    assert "\n  odf-node count sales totals\n" in explained
    assert "count" in run(home, site, "completion", "bash").stdout
    assert "Did you mean 'count'?" in run(home, site, "cuont").stderr
    assert run(home, site, "count", "nothing").returncode == 3


def test_name_of_ours_stays_ours(tmp_path: Path) -> None:
    write_package(tmp_path / "site", "odf_count", COUNT, GROUP, {"status": "odf_count"})
    shown = run(tmp_path / "home", tmp_path / "site", "status", "--help").stdout
    assert "blocks datasets have" not in shown


def test_broken_command_is_named_with_its_package_and_spoils_no_other(tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_broken", "import nowhere_to_be_found\n", GROUP, {"broken": "odf_broken"})
    write_package(site, "odf_leaving", "raise SystemExit(0)\n", GROUP, {"leaving": "odf_leaving"})
    write_package(site, "odf_empty", "TOPIC = 'care for this node'\n", GROUP, {"empty": "odf_empty"})

    for name, why in {"broken": "ModuleNotFoundError", "leaving": "SystemExit", "empty": "HELP"}.items():
        done = run(home, site, name)
        assert done.returncode == 2
        assert f"command '{name}' of package 'odf-{name}' cannot be loaded: " in done.stderr
        assert why in done.stderr
        assert "Traceback" not in done.stderr
    assert run(home, site, "list").returncode == 0
    assert "  list  " in run(home, site, "--help").stdout


def test_doctor_and_status_name_a_broken_command_with_its_package(tmp_path: Path) -> None:
    """PLUG-3."""
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_broken", "import nowhere_to_be_found\n", GROUP, {"broken": "odf_broken"})
    write_package(site, "odf_empty", "TOPIC = 'care for this node'\n", GROUP, {"empty": "odf_empty"})
    write_package(site, "odf_count", COUNT, GROUP, {"count": "odf_count"})
    stated = {
        "plug-in 'broken' of package 'odf-broken' cannot be used": "ModuleNotFoundError",
        "plug-in 'empty' of package 'odf-empty' cannot be used": "it has no HELP, EXAMPLES, configure, run",
    }

    found = [row["what"] for row in json.loads(run(home, site, "status", "-o", "json").stdout)]
    assert len(found) == len(stated)
    for what, why in stated.items():
        assert [why in each for each in found if each.startswith(what)] == [True]

    examined = run(home, site, "doctor", "-o", "json")
    assert examined.returncode == 1
    findings = [each for each in json.loads(examined.stdout) if "odf-broken" in str(each) or "odf-empty" in str(each)]
    assert [each["ok"] for each in findings] == [False, False]
