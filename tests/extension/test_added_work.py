"""Background work of external packages, each one file, in a real daemon (PLUG-3, PLUG-7, PLUG-8)."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from odf_node import plug_ins
from odf_node.errors import UsageError
from support.daemons import daemon, wait_until
from support.plug_in_packages import installed_package, write_package

GROUP = "odf_node.background"
COUNTING = Path(__file__).with_name("counting_work.py").read_text()
MANIFEST = Path(__file__).parents[2] / "examples" / "own-csv" / "prices.yaml"
WITHOUT_PORT = """\
from odf_node.daemon.background_work import BackgroundService


def serve(daemon):
    raise LookupError("no port")


WORK = BackgroundService(serve)
"""
BROKEN = {
    "import": ("import nowhere_to_be_found", "ModuleNotFoundError"),
    "contract": ("WORK = print", "expected a BackgroundWork"),
    "run": (COUNTING.replace("count_file.write_text", "count_file.no_such_method"), "no_such_method"),
    "open": (WITHOUT_PORT, "no port"),
}


def test_work_of_a_package_is_one_file_and_sees_the_node_change(tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    counted = home.with_suffix(".counted")
    write_package(site, "odf_counting", COUNTING, GROUP, {"counting": "odf_counting:WORK"})
    with daemon(home, environment={"PYTHONPATH": str(site)}) as served:
        wait_until(lambda: counted.exists() and counted.read_text() == "0", served.log_file.read_text)
        command = [sys.executable, "-m", "odf_node", "add", str(MANIFEST), "--home", str(home)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        wait_until(lambda: counted.read_text() == "1", served.log_file.read_text)
        assert served.log("plug-in-broken") == []


@pytest.mark.parametrize("what", BROKEN)
def test_broken_work_of_a_package_is_logged_once_and_stops_nothing(tmp_path: Path, what: str) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    program, reason = BROKEN[what]
    write_package(site, "odf_broken", program, GROUP, {"broken": "odf_broken:WORK"})
    write_package(site, "odf_counting", COUNTING, GROUP, {"counting": "odf_counting:WORK"})
    counted = home.with_suffix(".counted")
    with daemon(home, environment={"PYTHONPATH": str(site)}) as served:
        served.wait_for("plug-in-broken")
        for _ in range(3):  # calls that follow
            counted.unlink(missing_ok=True)
            wait_until(counted.exists, served.log_file.read_text)
        (line,) = served.log("plug-in-broken")
        assert (line["name"], line["package"], line["group"]) == ("broken", "odf-broken", GROUP)
        assert reason in line["error"]


def test_setting_that_needs_a_plug_in_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"^some\.port needs the plug-in 'other', which this installation does not"):
        plug_ins.require_plug_in(GROUP, "other", "some.port")
    with installed_package(tmp_path, "odf_other", "WORK = None", GROUP, {"other": "WORK"}):
        plug_ins.require_plug_in(GROUP, "other", "some.port")
        monkeypatch.setattr(plug_ins, "list_lacking_extras", lambda _point: ["port"])
        with pytest.raises(UsageError, match=r"^some\.port needs the plug-in 'other': pip install 'odf-node\[port\]'$"):
            plug_ins.require_plug_in(GROUP, "other", "some.port")
        missing = plug_ins.list_missing_plug_ins()
        assert (GROUP, "other", "pip install 'odf-other[port]'") in [(m.group, m.name, m.remedy) for m in missing]


def test_entry_points_of_ours_lead_to_what_their_groups_expect() -> None:
    of_others_alone = {"odf_node.chain_rules"}
    found = {group for group in plug_ins.GROUPS if plug_ins.PlugInNames(group, {}).installed()}
    assert found == set(plug_ins.GROUPS) - of_others_alone
    assert isinstance(plug_ins.PlugInNames(GROUP, {}).get_point("flight"), EntryPoint)


def test_daemon_without_the_plug_in_that_a_setting_needs_does_not_start(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[listen]\nport = 0\nflight_port = 0\n")
    hide = (
        "from odf_engines import plug_in_names\n"
        "plug_in_names.entry_points = lambda group: ()\n"
        "from odf_node.cli.main import main\nimport sys\n"
        f"sys.exit(main(['serve', '--home', {str(tmp_path / 'home')!r}, '--config', {str(settings)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", hide], env=os.environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert "listen.flight_port needs the plug-in 'flight', which this installation does not have" in done.stderr
