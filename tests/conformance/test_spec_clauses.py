"""All documents of the specification, the code and the tests speak of the same clauses."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*(ROOT / "spec").glob("*.md"), *(ROOT / "spec").glob("extensions/*.md"), *(ROOT / "spec").glob("plug-ins/*.md")]
)
STATED = re.compile(r"^(?:\| |\*\*)([A-Z]+-\d+)(?= \||[ .])", re.MULTILINE)
RANGE = re.compile(r"\b([A-Z]+)-(\d+) to \1-(\d+)\b")
CLAUSES = Counter(clause for path in DOCUMENTS for clause in STATED.findall(path.read_text()))
FAMILIES = sorted({clause.partition("-")[0] for clause in CLAUSES})
NAMED = re.compile(rf"\b(?:{'|'.join(FAMILIES)})-\d+\b(?!-)")


def iter_texts() -> Iterator[str]:
    """Yield what names clauses: code, tests and vectors, this file aside."""
    for folder in ("protocol", "engines", "node", "tests", "spec/vectors"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".json"} and path != Path(__file__):
                yield path.read_text()


def test_documents_state_hundreds_of_clauses_each_once() -> None:
    assert len(CLAUSES) > 500
    assert [clause for clause, count in CLAUSES.items() if count > 1] == []


def test_every_clause_is_named_by_code_or_tests_and_none_is_named_that_is_not_there() -> None:
    named: set[str] = set()
    within: set[str] = set()
    for text in iter_texts():
        named |= set(NAMED.findall(text))
        for family, first, last in RANGE.findall(text):
            within |= {f"{family}-{number}" for number in range(int(first), int(last) + 1)}
    assert sorted(set(CLAUSES) - named - within) == []
    assert sorted(named - set(CLAUSES)) == []
