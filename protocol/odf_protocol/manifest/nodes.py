"""The neutral tree between a manifest's text and its meaning.

**ScalarNode**, **ListNode** and **MapNode** say what was written and where, not its meaning: whether ``no`` is text or
a mistake is for the field that it was written to. YAML and JSON text become the same tree, so one reader serves both.

Lines and columns count from 1, columns in characters.

What an unquoted word means where no field says it has two users: extra attributes, which may hold any JSON value, and
the writer, which quotes a text exactly when the reference implementation does: ``no`` is a text there without quotes,
``0777`` and ``1e3`` only with them.

Source: YAML 1.2 core schema; integers of 128 bits and leading zeros as observed with the reference implementation.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

#: What a plain scalar says when it says nothing. Source: YAML 1.2 core schema, tag:yaml.org,2002:null.
NULL_WORDS: Final = frozenset({"", "~", "null", "Null", "NULL"})

#: Characters of a found value that an error message repeats before it cuts.
SHOWN_CHARACTERS: Final = 60


@dataclass(slots=True)
class ScalarNode:
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

    entries: list[tuple[ScalarNode, Node]]
    line: int
    column: int


Node = ScalarNode | ListNode | MapNode


def describe(node: Node) -> str:
    """Name what was found for an error message, cut to a readable length."""
    match node:
        case ScalarNode() if node.is_null:
            return "null" if node.text else "nothing"
        case ScalarNode():
            return repr(shorten(node.text)) if not node.is_plain else shorten(node.text)
        case ListNode():
            return "an empty list" if not node.items else f"a list of {len(node.items)}"
        case MapNode():
            return "an empty map" if not node.entries else f"a map with {shorten(node.entries[0][0].text)!r}"


def shorten(text: str) -> str:
    """Cut ``text`` to what a message can carry, on one line."""
    line = text if text.isprintable() else ascii(text)[1:-1]
    return line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + "…"


JsonScalar = None | bool | int | float | str

BOOLS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER: Final = re.compile(r"[+-]?(?:0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+|[0-9]+)", re.ASCII)
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NON_FINITE: Final = re.compile(r"[+-]?(?:\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")

#: Longest word tried as a number: 128 binary digits with sign and prefix fit, and so does any sensible float.
_MAX_NUMBER_CHARACTERS: Final = 4000

_MAX_INTEGER: Final = 2**128 - 1
_MIN_INTEGER: Final = -(2**127)


def resolve_plain(text: str) -> JsonScalar:
    """Say what the unquoted word ``text`` means: null, a bool, a number, or the text itself.

    Words that look like numbers but are not are texts: ``0777`` (an old octal), ``1_000``, ``12:30``, ``1e400``.
    Non-finite numbers come out as floats; whoever stores JSON has to reject them.
    """
    if text in NULL_WORDS:
        return None
    if text in BOOLS:
        return BOOLS[text]
    if _has_leading_zero(text):
        return text
    number = _find_number(text)
    return text if number is None else number


def needs_quotes(text: str) -> bool:
    """Whether the string ``text``, written without quotes, would be read as something else by somebody."""
    if text in NULL_WORDS or text in BOOLS or _has_leading_zero(text):
        return True
    return _find_number(text) is not None


def _has_leading_zero(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return len(digits) > 1 and digits[0] == "0" and digits.isascii() and digits.isdigit()


def _find_number(text: str) -> int | float | None:
    if len(text) > _MAX_NUMBER_CHARACTERS:
        return None
    if _NON_FINITE.fullmatch(text):
        return math.nan if text[-1] in "nN" else -math.inf if text[0] == "-" else math.inf
    if _INTEGER.fullmatch(text):
        # Prefixes are Python's own; decimals with leading zeros, which it rejects, never come here.
        value = int(text, base=0)
        if _MIN_INTEGER <= value <= _MAX_INTEGER:
            return value
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else None
    return None


def format_float(value: float) -> str:
    """Write a finite float in the shortest form that reads back as the same, with exponents as the peers write them.

    >>> format_float(1e16), format_float(1e-5), format_float(1.0)
    ('1e16', '0.00001', '1.0')
    """
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    if int(exponent) == -5:
        # Python goes over to exponents one power of ten earlier than the peers do.
        sign = "-" if mantissa.startswith("-") else ""
        return f"{sign}0.0000{mantissa.lstrip('-').replace('.', '')}"
    return f"{mantissa}e{int(exponent)}"
