"""Routes of external packages, each one file, in a real daemon (PLUG-1 to PLUG-6)."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from support.daemons import daemon
from support.plug_in_packages import write_package

GROUP = "odf_node.routes"
GREETING = Path(__file__).with_name("greeting_route.py").read_text()
BROKEN = {
    "import": ("import nowhere_to_be_found", "ModuleNotFoundError"),
    "exit": ("raise SystemExit(1)", "SystemExit"),
    "contract": ("ROUTES = 1", "expected a RouteTable"),
    "taken": (GREETING.replace('"/-/greeting"', '"/info"'), "GET /info"),
    "prepare": (GREETING.replace("app[NODE] = node", "raise LookupError('no greeting')"), "no greeting"),
}


def fetch(url: str, token: str | None = None) -> tuple[int, object]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None


def run(home: Path, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "odf_node", *words, "--home", str(home)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_route_of_a_package_is_one_file_and_answers_as_ours_do(tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_greeting", GREETING, GROUP, {"greeting": "odf_greeting:ROUTES"})
    token = run(home, site, "token", "create", "me").stdout.split()[-1]
    with daemon(home, environment={"PYTHONPATH": str(site)}) as served:
        assert fetch(f"{served.url}/-/greeting") == (200, {"datasets": 0})
        assert fetch(f"{served.url}/-/greeting/private") == (401, None)
        assert fetch(f"{served.url}/-/greeting/private", token) == (200, {"datasets": 0})
        assert served.log("plug-in-broken") == []


@pytest.mark.parametrize("what", BROKEN)
def test_broken_route_of_a_package_is_named_and_stops_nothing(tmp_path: Path, what: str) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    program, reason = BROKEN[what]
    write_package(site, "odf_broken", program, GROUP, {"broken": "odf_broken:ROUTES"})
    write_package(site, "odf_greeting", GREETING, GROUP, {"greeting": "odf_greeting:ROUTES"})
    with daemon(home, environment={"PYTHONPATH": str(site)}) as served:
        assert fetch(f"{served.url}/info")[0] == 200
        assert fetch(f"{served.url}/-/greeting")[0] == 200
        (line,) = served.log("plug-in-broken")
        assert (line["name"], line["package"], line["group"]) == ("broken", "odf-broken", GROUP)
        assert reason in line["error"]
    if what in {"import", "exit"}:
        assert f"plug-in 'broken' of package 'odf-broken' cannot be used: {reason}" in run(home, site, "status").stdout
        assert "odf-broken" in run(home, site, "doctor").stdout


def test_name_of_ours_stays_ours(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_package(site, "odf_greeting", GREETING, GROUP, {"pages": "odf_greeting:ROUTES"})
    with daemon(tmp_path / "home", environment={"PYTHONPATH": str(site)}) as served:
        assert fetch(f"{served.url}/-/greeting")[0] == 404
        with urllib.request.urlopen(f"{served.url}/-/sign-in", timeout=30) as page:
            assert page.status == 200
