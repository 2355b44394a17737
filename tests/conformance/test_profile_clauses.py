"""spec/odf-profile.md, the code and the tests speak of the same clauses."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "spec" / "odf-profile.md").read_text()
FAMILIES = ("ID", "TIME", "WIRE", "NAME", "HASH")
CLAUSE = re.compile(rf"\b(?:{'|'.join(FAMILIES)})-\d+\b")
CLAUSES = re.findall(rf"^\| ((?:{'|'.join(FAMILIES)})-\d+) \|", SPEC, re.MULTILINE)


def test_clauses_are_numbered_once_and_in_order() -> None:
    for family in FAMILIES:
        numbers = [clause for clause in CLAUSES if clause.startswith(f"{family}-")]
        assert numbers == [f"{family}-{n + 1}" for n in range(len(numbers))]


def test_every_clause_is_named_by_a_test_or_vector() -> None:
    named: set[str] = set()
    for path in [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "spec" / "vectors").glob("*.json")]:
        named |= set(CLAUSE.findall(path.read_text()))
    assert set(CLAUSES) <= named


def test_every_clause_named_in_code_tests_and_vectors_is_in_the_profile() -> None:
    named: set[str] = set()
    for path in (ROOT / "protocol").rglob("*.py"):
        named |= set(CLAUSE.findall(path.read_text()))
    for path in (ROOT / "spec" / "vectors").glob("*.json"):
        named |= set(CLAUSE.findall(path.read_text()))
    assert named <= set(CLAUSES)


def test_every_module_named_in_the_profile_exists() -> None:
    modules = set(re.findall(r"`([\w/]+\.py)`", SPEC))
    assert modules
    assert {name for name in modules if not (ROOT / "protocol" / "odf_protocol" / name).is_file()} == set()
