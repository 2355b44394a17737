"""How many columns of a terminal a text takes, and how it is cut to some."""

from typing import Final

import wcwidth

_MARK: Final = "..."
MIN_WIDTH: Final = 8  # guess: the beginning of a name, and the mark
_SIGNS_OF_A_COLUMN: Final = 8  # guess: letters with several marks have four, families of emoji three and a half


def width_of(text: str) -> int:
    """Say how many columns of a terminal a text takes: letters of East Asia two, marks above letters none."""
    if text.isascii():
        return len(text)
    return wcwidth.width(text)


def cut_to(text: str, width: int) -> str:
    """Cut a text that takes more columns than ``width``, or has signs without end that take none."""
    if len(text) <= _SIGNS_OF_A_COLUMN * max(width, MIN_WIDTH) and width_of(text) <= width:
        return text
    room = max(0, width - len(_MARK))
    kept = text[:room]
    while width_of(kept) > room:
        kept = kept[:-1]
    return f"{kept}{_MARK}"
