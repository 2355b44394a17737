"""Numbers of things, names of rules and characters that do not show, as people read them."""

import re
from typing import Final

UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|[\u200c\u200d](?![\u0600-\U0010ffff])|(?<![\u0600-\U0010ffff])[\u200c\u200d]"
)
"""What moves a cursor, turns text around or takes no room, so that two texts look alike; newline and tab apart.

Source: ECMA-48; Unicode's Default_Ignorable_Code_Point, Bidi_Control and line ends. Joiners stay between letters of
scripts that are written with them, and in emoji.
"""


def count_of(number: int, noun: str) -> str:
    """Say how many there are: ``1 row``, ``47,564 rows``; ``noun`` is one whose plural ends in ``s``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rule_in_words(rule: str) -> str:
    """Write a rule for people: ``HEAD-4 signed-by-the-dataset-key`` is "signed by the dataset key (HEAD-4)"."""
    clause, _, name = rule.partition(" ")
    words = name.replace("-", " ").replace("re executed", "re-executed")
    return f"{words} ({clause})" if name else rule
