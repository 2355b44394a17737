"""``spec/threats.md`` names every suite of attacks, and no test that is not there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
THREATS = (ROOT / "spec" / "threats.md").read_text()


def test_every_suite_of_attacks_is_named() -> None:
    found = [*ROOT.glob("tests/attacks/test_*.py"), *ROOT.glob("tests/plug_ins/*/attacks/test_*.py")]
    suites = {str(path.relative_to(ROOT)) for path in found}
    assert {suite for suite in suites if f"`{suite}`" not in THREATS} == set()


def test_every_test_that_is_named_is_there() -> None:
    named = set(re.findall(r"`(tests/[\w/]+(?:\.py)?)`", THREATS))
    assert len(named) > 40
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_claim_names_what_tries_it() -> None:
    """A row of a table names a test, or stands below the sentence that names one for the whole table."""
    sections = re.split(r"^## ", THREATS, flags=re.MULTILINE)[1:]
    for section in sections:
        above, *rows = re.split(r"^(?=\|)", section, flags=re.MULTILINE)
        for row in rows:
            is_claim = not re.match(r"\| *(attack|-)", row)
            assert not is_claim or "`tests/" in above + row or "the same" in row, row
