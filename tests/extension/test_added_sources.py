"""A kind of source of an external package, one file, in the real command line (SRC-1 to SRC-3)."""

import json
import subprocess
import sys
from pathlib import Path

from support.command_line import environment_of
from support.plug_in_packages import write_package

GROUP = "odf_node.sources"
COUNTDOWN = Path(__file__).with_name("countdown_source.py").read_text()
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: launches
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "URL"}
      read: {kind: NdJson, ddlSchema: ["number INT"]}
      merge: {kind: Append}
"""


def run(home: Path, site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the program with what is installed in ``site``."""
    environment = environment_of(home, PYTHONPATH=str(site))
    command = [sys.executable, "-m", "odf_node", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_source_of_a_package_is_one_file_and_is_pulled_as_ours_are(tmp_path: Path) -> None:
    home, site, manifest = tmp_path / "home", tmp_path / "site", tmp_path / "launches.yaml"
    write_package(site, "odf_countdown", COUNTDOWN, GROUP, {"countdown": "odf_countdown:SOURCE"})
    manifest.write_text(MANIFEST.replace("URL", "countdown:3"))

    added = run(home, site, "add", manifest)
    assert added.returncode == 0, added.stderr
    pulled = run(home, site, "pull", "launches")
    assert pulled.returncode == 0, pulled.stderr
    rows = run(home, site, "sql", "-c", 'SELECT number FROM "launches" ORDER BY "offset"', "-o", "json")
    assert json.loads(rows.stdout) == [{"number": 3}, {"number": 2}, {"number": 1}]
    again = run(home, site, "pull", "launches", "-o", "json")
    assert again.returncode == 0
    assert '"kind": "odf-countdown/read"' in run(home, site, "log", "launches", "-o", "json").stdout
    assert len(json.loads(run(home, site, "tail", "launches", "-o", "json").stdout)) == 3


def test_what_the_package_rejects_and_what_no_kind_reads_is_told_with_its_place(tmp_path: Path) -> None:
    home, site, manifest = tmp_path / "home", tmp_path / "site", tmp_path / "launches.yaml"
    write_package(site, "odf_countdown", COUNTDOWN, GROUP, {"countdown": "odf_countdown:SOURCE"})

    manifest.write_text(MANIFEST.replace("URL", "countdown:never"))
    refused = run(home, site, "add", manifest)
    assert refused.returncode == 7
    assert "launches.yaml:8:31: content.metadata[0].fetch.url: expected countdown:N, N from 1 to 1000" in refused.stderr

    manifest.write_text(MANIFEST.replace("URL", "countdwn:3"))
    refused = run(home, site, "add", manifest)
    assert refused.returncode == 7
    assert "countdown:N" in refused.stderr
    assert "did you mean 'countdown:'?" in refused.stderr


def test_dataset_whose_kind_is_not_installed_is_kept_and_rejected_when_it_is_pulled(tmp_path: Path) -> None:
    home, site, manifest = tmp_path / "home", tmp_path / "site", tmp_path / "launches.yaml"
    write_package(site, "odf_countdown", COUNTDOWN, GROUP, {"countdown": "odf_countdown:SOURCE"})
    manifest.write_text(MANIFEST.replace("URL", "countdown:3"))
    assert run(home, site, "add", manifest).returncode == 0

    without = run(home, tmp_path / "nothing", "pull", "launches")
    assert without.returncode == 8
    assert "countdown" in without.stderr
    assert "Traceback" not in without.stderr
    assert run(home, tmp_path / "nothing", "log", "launches").returncode == 0
