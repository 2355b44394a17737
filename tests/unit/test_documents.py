"""Documents lead to each other, by links that lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

REPOSITORY = Path(__file__).parents[2]
PROSE = sorted(
    path
    for pattern in ("*.md", "spec/**/*.md", "examples/**/*.md", "tests/**/*.md")
    for path in REPOSITORY.glob(pattern)
)
LINKED = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)


def without_code(path: Path) -> str:
    return re.sub(r"^(```|~~~).*?^\1", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def links_of(path: Path) -> list[str]:
    found = [
        one or other for one, other in LINKED.findall(re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", without_code(path)))
    ]
    return [unquote(target) for target in found if not re.match(r"[a-z][a-z+.-]*:", target)]


def anchors_of(path: Path) -> set[str]:
    """Where a link into a document can lead, by the rule that GitHub has for headings."""
    anchors: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", without_code(path), flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        anchors[slug] = anchors.get(slug, -1) + 1
        if anchors[slug]:
            anchors[f"{slug}-{anchors[slug]}"] = 0
    return {*anchors, *re.findall(r"<a (?:id|name)=\"([^\"]+)\"", path.read_text())}


def find_dead_links(path: Path) -> Iterator[str]:
    for target in links_of(path):
        name, _, anchor = target.partition("#")
        there = path.parent / name if name else path
        is_here = there.exists() and there.resolve().is_relative_to(REPOSITORY)
        if not is_here or (anchor and there.suffix == ".md" and anchor not in anchors_of(there)):
            yield target


def test_links_between_documents_lead_somewhere() -> None:
    assert {path: links for path in PROSE if (links := [*find_dead_links(path)])} == {}


def test_dead_links_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "REPOSITORY", tmp_path)
    (tmp_path / "there.md").write_text("# One `thing`, twice\n\n# One thing, twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md#one-thing-twice) [b](there.md#one-thing-twice-1) [c](there.md#two) [d](gone.md 'x')\n"
        "[e](#one) [f](http://elsewhere/x) [g](gone.png) [h](../outside.md) `[i](code.md)`\n"
        "```\n[j](code.md)\n```\n\n[k]: gone.txt\n"
    )
    (tmp_path.parent / "outside.md").write_text("")
    assert list(find_dead_links(page)) == ["there.md#two", "gone.md", "#one", "gone.png", "../outside.md", "gone.txt"]


def test_rows_of_tables_stand_below_a_heading() -> None:
    """An empty line ends a table: the rows behind it would be a heap of text."""
    assert {path: rows for path in PROSE if (rows := find_rows_without_heading(without_code(path)))} == {}


def find_rows_without_heading(text: str) -> list[str]:
    tables = re.findall(r"^\n((?:\|[^\n]*\n)+)", text, flags=re.MULTILINE)
    return [rows.partition("\n")[0] for rows in tables if not re.match(r"[^\n]*\n\|[-:| ]+\n", rows)]


def test_rows_behind_an_empty_line_are_found() -> None:
    text = "x\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n| 3 | 4 |\n| 5 | 6 |\n"
    assert find_rows_without_heading(text) == ["| 3 | 4 |"]
