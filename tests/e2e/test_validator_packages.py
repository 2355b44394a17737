"""The package of the guides for authors is built, installed, declared and used (VALID-3, SINK-1)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.nodes import RealNode

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "examples" / "validators"
GUIDE = REPOSITORY / "spec" / "guides" / "validators.md"
SINKS = REPOSITORY / "spec" / "guides" / "sinks.md"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the package is installed."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
            "--no-build-isolation", "--target", folder, PACKAGE,
        ],
        check=True, capture_output=True, timeout=400,
    )  # fmt: skip
    return {"PYTHONPATH": str(folder)}


@pytest.mark.spark
def test_validator_of_the_guide_is_declared_and_finds_wrong_accounts(tmp_path: Path, installed: dict[str, str]) -> None:
    node = RealNode(tmp_path / "home", is_apart=True)
    refused = node.run("add", str(PACKAGE / "payments.yaml"))
    assert refused.code == 7
    assert "a validator that is installed here" in refused.err
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((PACKAGE / "payments.yaml").read_text().replace("countries:", "country:"))
    refused = node.run("add", str(wrong), environment=installed)
    assert "validators[0].country: a parameter of it (column, countries)" in refused.err
    assert "did you mean 'countries'?" in refused.err
    node.must("add", str(PACKAGE / "payments.yaml"), environment=installed)
    rows = tmp_path / "payments.ndjson"
    lines = [
        {"id": 1, "account": "DE89 3704 0044 0532 0130 00", "others": ["NO93 8601 1117 947"]},
        {"id": 2, "account": "DE88 3704 0044 0532 0130 00"},
        {"id": 3, "account": "FR14 2004 1010 0505 0001 3M02 606"},
        {"id": 4, "others": ["NO9386011117947", None, "NO9386011117948"]},
    ]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = node.must("ingest", "payments", str(rows), environment=installed)
    assert "1 row added" in ran.out
    found = node.must("quarantine", "show", "payments", "-o", "json", environment=installed).json()
    errors = [[(e["plug_in"], e["code"], e["column"], e["value"]) for e in row["errors"]] for row in found]
    assert errors == [
        [("Iban", "iban", "account", "DE88 3704 0044 0532 0130 00")],
        [("Iban", "iban-country", "account", "FR14 2004 1010 0505 0001 3M02 606")],
        [("Iban", "iban", "others[2]", "NO9386011117948")],
    ]
    (dataset,) = [each["id"] for each in node.must("list", "-o", "json").json()]
    ticket = node.home / "sinks" / dataset.removeprefix("did:odf:") / "ticket-1.md"
    waiting = node.must("status", "-o", "json", environment=installed).json()
    assert "1 entry waits for the sink Tickets, which 'odf-node serve' gives it, or this command" in {
        each["what"] for each in waiting if each["command"] == "odf-node quarantine deliver payments"
    }
    assert not ticket.exists()
    ran = node.must("quarantine", "deliver", "payments", environment=installed)
    assert ran.out == "Tickets: entry 1 done (ticket 1)\n"
    first, *lines = ticket.read_text().splitlines()
    assert first == f"For accounts: 3 rows of {rows} (payments)"
    assert lines[0] == "- 1.1: not an IBAN, or with a wrong digit"
    assert len(lines) == 3
    assert "quarantine deliver" not in node.must("status", environment=installed).out


def test_guide_shows_the_package_that_is_installed_and_fits_two_pages() -> None:
    guide, code = GUIDE.read_text(), (PACKAGE / "odf_iban" / "__init__.py").read_text()
    assert len(guide.splitlines()) <= 110
    (shown,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert_shown(shown, code)
    (entry,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert entry in (PACKAGE / "pyproject.toml").read_text()


def test_guide_for_sinks_shows_the_package_that_is_installed_and_fits_a_page() -> None:
    guide = SINKS.read_text()
    assert len(guide.splitlines()) <= 55
    (shown,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert_shown(shown, (PACKAGE / "odf_iban" / "tickets.py").read_text())
    (entry,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert entry in (PACKAGE / "pyproject.toml").read_text()


def assert_shown(shown: str, code: str) -> None:
    plain = re.sub(r"(: Parameters|: Context|: BadRows|: pa\.Table| -> [^:]+)(?=[,):])", "", code)
    for line in shown.splitlines():
        if line.strip() not in {"", "..."}:
            assert line.strip() in plain, line
