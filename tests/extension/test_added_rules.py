"""Rules for chains of others of an external package, each one file, in a real pull from a real node (PLUG-24)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import environment_of
from support.daemons import daemon
from support.plug_in_packages import write_package

GROUP = "odf_node.chain_rules"
LICENCE = Path(__file__).with_name("licence_rule.py").read_text()
RULE = "licence_has_a_safe_address"
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: NAME
  kind: Root
  metadata:
    - {kind: SetLicense, shortName: open, name: Open terms, websiteUrl: "ADDRESS"}
    - kind: AddPushSource
      sourceName: default
      read: {kind: Csv, header: true, ddlSchema: ["city STRING"]}
      merge: {kind: Append}
"""


def run(home: Path, site: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odf_node", *words]
    environment = environment_of(home, PYTHONPATH=str(site))
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node without the package, which has a dataset that keeps the rule and one that breaks it."""
    folder = tmp_path_factory.mktemp("peer")
    home, nowhere = folder / "home", folder / "nowhere"
    (folder / "rows.csv").write_text("city\nOslo\n")
    for name, address in {"safe": "https://example.org/terms", "unsafe": "http://example.org/terms"}.items():
        (folder / f"{name}.yaml").write_text(MANIFEST.replace("NAME", name).replace("ADDRESS", address))
        for words in (("add", folder / f"{name}.yaml"), ("ingest", name, folder / "rows.csv"), ("publish", name)):
            assert run(home, nowhere, *words).returncode == 0
    with daemon(home) as served:
        yield served.url


def list_names(home: Path, site: Path) -> list[str]:
    return run(home, site, "list", "-o", "names").stdout.split()


def test_chain_that_breaks_the_rule_of_a_package_is_rejected_on_pull_with_its_name(peer: str, tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_house", LICENCE, GROUP, {"licence": f"odf_house:{RULE}"})
    rejected = run(home, site, "pull", f"{peer}/unsafe")
    assert rejected.returncode == 4, rejected.stderr
    assert "licence has a safe address (HOUSE-1)" in rejected.stderr
    assert "http://example.org/terms" in rejected.stderr
    assert list_names(home, site) == []
    kept = json.loads(run(home, site, "inspect", "refusals", "-o", "json").stdout)
    assert [each["rule"] for each in kept] == ["HOUSE-1 licence-has-a-safe-address"]

    assert run(home, site, "pull", f"{peer}/safe").returncode == 0
    assert list_names(home, site) == ["safe"]
    # The rule is this node's own: another one takes the chain, and what is held stays valid when the rule comes.
    assert run(home, tmp_path / "nowhere", "pull", f"{peer}/unsafe").returncode == 0
    assert run(home, site, "verify", "unsafe").returncode == 0


def test_rule_of_a_package_that_does_not_bind_is_a_note(peer: str, tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    program = LICENCE.replace("odf=None", "odf=None, binds_foreign=False")
    write_package(site, "odf_house", program, GROUP, {"licence": f"odf_house:{RULE}"})
    pulled = run(home, site, "pull", f"{peer}/unsafe")
    assert pulled.returncode == 0, pulled.stderr
    assert "breaks HOUSE-1 licence-has-a-safe-address" in pulled.stdout + pulled.stderr


def test_rule_that_fails_on_a_block_rejects_it(peer: str, tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    program = LICENCE.replace("event.website_url", "event.no_such_field")
    write_package(site, "odf_house", program, GROUP, {"licence": f"odf_house:{RULE}"})
    rejected = run(home, site, "pull", f"{peer}/safe")
    assert rejected.returncode == 4
    assert "(HOUSE-1)" in rejected.stderr
    assert "AttributeError" in rejected.stderr
    assert list_names(home, site) == []


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import nowhere_to_be_found\n", "ModuleNotFoundError"),
        (f"{RULE} = 1\n", "is a int, expected a Rule"),
        (LICENCE.replace("HOUSE-1", "CHAIN-4"), "CHAIN-4 is a clause of the specification"),
    ],
    ids=["import", "contract", "clause"],
)
def test_nothing_of_others_is_taken_while_a_rule_cannot_be_used(
    peer: str, tmp_path: Path, program: str, why: str
) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_house", program, GROUP, {"licence": f"odf_house:{RULE}"})
    rejected = run(home, site, "pull", f"{peer}/safe")
    assert rejected.returncode == 2
    assert "the chain rule 'licence' of package 'odf-house' cannot be used" in rejected.stderr
    assert why in rejected.stderr
    assert list_names(home, site) == []


def test_of_two_rules_of_one_name_neither_is_left_out_without_a_word(peer: str, tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_house", LICENCE, GROUP, {"licence": f"odf_house:{RULE}"})
    write_package(site, "odf_other", LICENCE, GROUP, {"licence": f"odf_other:{RULE}"})
    rejected = run(home, site, "pull", f"{peer}/safe")
    assert rejected.returncode == 2, rejected.stdout
    assert "another package has a rule of this name" in rejected.stderr
    assert list_names(home, site) == []


def test_rule_whose_extra_is_not_installed_is_not_left_out_without_a_word(peer: str, tmp_path: Path) -> None:
    home, site = tmp_path / "home", tmp_path / "site"
    write_package(site, "odf_house", LICENCE, GROUP, {"licence": f"odf_house:{RULE} [geo]"})
    with (site / "odf_house-1.0.dist-info" / "METADATA").open("a") as file:
        file.write("Provides-Extra: geo\nRequires-Dist: nowhere-to-be-found; extra == 'geo'\n")
    rejected = run(home, site, "pull", f"{peer}/safe")
    assert rejected.returncode == 2, rejected.stdout
    assert "what its extra brings is not installed" in rejected.stderr
    assert list_names(home, site) == []
