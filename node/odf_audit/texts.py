"""Texts that others chose, made fit to be kept and shown: bounded, on one line, without secrets.

Source: clause AUDIT-11 in ``spec/plug-ins/audit.md``.
"""

import re
from collections.abc import Sequence
from typing import Final

NAME_CHARACTERS: Final = 200  # guess: names of users, hosts, threads and programs are shorter
WORD_CHARACTERS: Final = 1_000  # guess: a path, or an SQL text of some lines
MAX_WORDS: Final = 100  # guess: more than a command line of people has
HIDDEN: Final = "***"
"""Stands for what was left out of a command line."""

_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s]{1,1000}@")
_SECRET_NAME: Final = r"(?:token|password|passwd|pwd|secret|credential|api[-_]?key|access[-_]?key|private[-_]?key)"  # noqa: S105 - names
_ASSIGNED: Final = re.compile(rf"(?i)({_SECRET_NAME}[\w-]{{0,50}}[\"']?\s?[=:]\s?)\S+")
_OPTION: Final = re.compile(rf"(?i)--?[\w-]{{0,50}}{_SECRET_NAME}[\w-]{{0,50}}")


def bounded(text: str, most: int = NAME_CHARACTERS) -> str:
    """Give a text of at most so many characters on one line; what is not printable is written as its number."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    if cut.isprintable():
        return cut
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in cut)


def without_secrets(words: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Give the words of a command line as they are kept, and whether something was left out of them."""
    kept: list[str] = []
    is_changed = len(words) > MAX_WORDS
    hides_next = False
    for word in words[:MAX_WORDS]:
        if hides_next and not word.startswith("-"):
            kept.append(HIDDEN)
            is_changed, hides_next = True, False
            continue
        shown = _ASSIGNED.sub(rf"\1{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", word))
        shown = bounded(shown, WORD_CHARACTERS)
        is_changed = is_changed or shown != word
        hides_next = _OPTION.fullmatch(word) is not None
        kept.append(shown)
    return tuple(kept), is_changed
