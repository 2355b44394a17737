"""Names are made of the words in ``spec/guides/words.md``, and a class has a name of its own."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("protocol", "engines", "node")
NOT_USED = {
    *("refuse", "refuses", "refusing", "refusals", "replay", "replays", "replaying", "recompute", "recomputed"),
    *("errand", "wishes", "shelf", "desk", "mend", "mends", "mending", "whoever", "somebody", "nobody"),
    *("stranger", "strangers", "unheard", "say", "told"),
}
BOUNDS = {"most", "least"}
"""Not used in the names of constants: it is max and min."""
KEPT = {
    # What homes keep, peers receive, and other packages and scripts call.
    *("Told", "told", "replay_record", "replay_records", "replay", "refusals", "_replay", "replayRecord"),
    *("AT_LEAST_ONCE", "AT_MOST_ONCE"),
}
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
SHARED = {
    "TransformInput",  # ODF's event names it, and so does the contract of engines, whose request repeats the event's.
}
"""Classes that share their name with another, each with the reason."""


@cache
def python_files() -> tuple[Path, ...]:
    return tuple(path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py")))


def test_names_are_of_the_words_of_the_field() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path in python_files():
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type == tokenize.NAME and token.string not in KEPT:
                parts = {part.lower() for part in PART.findall(token.string)}
                is_bound = token.string.isupper() and bool(parts & BOUNDS)
                if parts & NOT_USED or is_bound:
                    found[token.string].add(str(path.relative_to(ROOT)))
    assert not found, {name: sorted(paths)[:2] for name, paths in found.items()}


def test_class_has_a_name_of_its_own() -> None:
    """But for ``Parameters``, which stand inside of the plug-in whose they are, and private ones."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name != "Parameters":
                places[node.name].add(str(path.relative_to(ROOT)))
    shared = {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}
    assert shared.keys() <= SHARED, shared
