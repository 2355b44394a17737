"""The neutral tree between a manifest's text and its meaning.

**Scalar**, **ListNode** and **MapNode** say what was written and where, not what it means: whether ``no`` is a text or
a mistake is for the field that it was written to. YAML and JSON text become the same tree, so one reader serves both.

Lines and columns count from 1, columns in characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: What a plain scalar says when it says nothing. Source: YAML 1.2 core schema, tag:yaml.org,2002:null.
NULL_WORDS: Final = frozenset({"", "~", "null", "Null", "NULL"})

#: Characters of a found value that an error message repeats before it cuts.
SHOWN_CHARACTERS: Final = 60


@dataclass(slots=True)
class Scalar:
    """A word, number or text as written; ``is_plain`` tells that no quotes or block sign protect it."""

    text: str
    is_plain: bool
    line: int
    column: int

    @property
    def is_null(self) -> bool:
        """Whether the scalar is the absence of a value."""
        return self.is_plain and self.text in NULL_WORDS


@dataclass(slots=True)
class ListNode:
    """Items in order."""

    items: list[Node]
    line: int
    column: int


@dataclass(slots=True)
class MapNode:
    """Entries in order; keys are unique, which the text readers have checked."""

    entries: list[tuple[Scalar, Node]]
    line: int
    column: int


Node = Scalar | ListNode | MapNode


def describe(node: Node) -> str:
    """Name what was found for an error message, cut to a readable length."""
    match node:
        case Scalar() if node.is_null:
            return "null" if node.text else "nothing"
        case Scalar():
            return repr(shorten(node.text)) if not node.is_plain else shorten(node.text)
        case ListNode():
            return "an empty list" if not node.items else f"a list of {len(node.items)}"
        case MapNode():
            return "an empty map" if not node.entries else f"a map with {shorten(node.entries[0][0].text)!r}"


def shorten(text: str) -> str:
    """Cut ``text`` to what a message can carry, on one line."""
    line = text if text.isprintable() else ascii(text)[1:-1]
    return line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + "…"
