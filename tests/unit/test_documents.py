"""Documents lead to each other: every link between them, and every page of the site that is made of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
PROSE = sorted(
    path
    for pattern in ("*.md", "spec/**/*.md", "examples/**/*.md", "tests/**/*.md")
    for path in REPOSITORY.glob(pattern)
)
SITE = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text())
LINKED = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)


def prose_of(path: Path) -> str:
    """A document without its code, in which brackets and signs are no Markdown."""
    text = re.sub(r"^(```|~~~).*?^\1", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


def links_of(path: Path) -> list[str]:
    found = [one or other for one, other in LINKED.findall(prose_of(path))]
    return [unquote(target) for target in found if not re.match(r"[a-z][a-z+.-]*:", target)]


def anchors_of(path: Path) -> set[str]:
    """Where a link into a document can lead, by the rule that GitHub has for headings."""
    anchors: dict[str, int] = {}
    text = re.sub(r"^(```|~~~).*?^\1", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", text, flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        anchors[slug] = anchors.get(slug, -1) + 1
        if anchors[slug]:
            anchors[f"{slug}-{anchors[slug]}"] = 0
    return {*anchors, *re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)}


def find_dead_links(path: Path) -> Iterator[str]:
    for target in links_of(path):
        name, _, anchor = target.partition("#")
        there = path.parent / name if name else path
        is_here = there.exists() and there.resolve().is_relative_to(REPOSITORY)
        if not is_here or (anchor and there.suffix == ".md" and anchor not in anchors_of(there)):
            yield target


@pytest.mark.parametrize("path", PROSE, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    assert list(find_dead_links(path)) == []


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


def pages_of(entries: list[object]) -> Iterator[str]:
    for entry in entries:
        for child in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(child, list):
                yield from pages_of(child)
            else:
                yield str(child)


def test_site_has_every_document_once_and_no_other() -> None:
    pages = list(pages_of(SITE["nav"]))
    written = {str(path.relative_to(REPOSITORY)) for path in PROSE if path.parts[len(REPOSITORY.parts)] != "tests"}
    assert len(set(pages)) == len(pages)
    assert sorted(written ^ set(pages)) == []
