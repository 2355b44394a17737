"""Attachments and lines of ``status`` of external packages, in the real command line (PLUG-3, PLUG-10, PLUG-11)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import environment_of
from support.plug_in_packages import write_package

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: SetAttachments
      attachments: {kind: Embedded, items: [{path: odd/owner.txt, content: "TEXT"}]}
"""
OWNERS = '''"""Owners of datasets, named in an attachment of one line."""

from odf_node.ingest.attachment_kinds import AttachmentKind
from odf_protocol.manifest.errors import ManifestError


def check(text):
    if len(text.split()) != 1:
        raise ManifestError("odd/owner.txt", 1, 1, path="owner", expected="one word", found=text)


OWNER = AttachmentKind("odd/owner.txt", check)
'''
COUNTING = '''"""Says how many datasets there are."""

from odf_node.upkeep.status_findings import Condition, StatusFinding, StatusReport


def count(home):
    found = len(home.store.list_datasets())
    yield StatusFinding(Condition.WAITING, None, f"{found} datasets", "odf-node list")


COUNT = StatusReport(count)
'''


def run(home: Path, site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odf_node", *words]
    environment = environment_of(home, PYTHONPATH=str(site))
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_attachment_of_a_package_is_checked_by_add(tmp_path: Path) -> None:
    home, site, manifest = tmp_path / "home", tmp_path / "site", tmp_path / "cities.yaml"
    write_package(site, "odf_owners", OWNERS, "odf_node.attachments", {"owner": "odf_owners:OWNER"})
    manifest.write_text(MANIFEST.replace("TEXT", "two words"))
    rejected = run(home, site, "add", manifest)
    assert rejected.returncode == 7
    assert "expected in line 1, owner: one word, found two words" in rejected.stderr.replace("'", "")
    assert run(home, site, "list", "-o", "names").stdout == ""
    manifest.write_text(MANIFEST.replace("TEXT", "alice"))
    assert run(home, site, "add", manifest).returncode == 0


def test_package_adds_lines_to_status(tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_counting", COUNTING, "odf_node.status", {"count": "odf_counting:COUNT"})
    found = json.loads(run(home, site, "status", "-o", "json").stdout)
    assert [(row["condition"], row["what"], row["command"]) for row in found] == [
        ("waiting", "0 datasets", "odf-node list")
    ]


@pytest.mark.parametrize("program", [COUNTING.replace("list_datasets", "no_such_method"), "COUNT = 1"])
def test_broken_report_of_a_package_is_named_and_stops_nothing(tmp_path: Path, program: str) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_counting", program, "odf_node.status", {"count": "odf_counting:COUNT"})
    ran = run(home, site, "status", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    (row,) = json.loads(ran.stdout)
    assert row["what"].startswith("plug-in 'count' of package 'odf-counting' cannot be used")
