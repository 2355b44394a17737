"""spec/plug-ins/smart-transfer.md, the code and the tests speak of the same clauses."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
CLAUSE = re.compile(r"\bSMART-\d+\b")
CLAUSES = re.findall(
    r"^\| (SMART-\d+) \|", (ROOT / "spec" / "plug-ins" / "smart-transfer.md").read_text(), re.MULTILINE
)


def test_clauses_are_numbered_once_and_in_order() -> None:
    assert [f"SMART-{n + 1}" for n in range(len(CLAUSES))] == CLAUSES


def test_every_clause_named_in_code_is_in_the_text() -> None:
    sources = [path for part in ("protocol", "node") for path in (ROOT / part).rglob("*.py")]
    named = {clause for path in sources for clause in CLAUSE.findall(path.read_text())}
    assert named == set(CLAUSES)
