"""How the numbers of a column are written: which sign stands before the decimals, which between thousands."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

_MAX_DIGITS: Final = 18
"""That fit 64 bits whatever they are."""

_SCIENTIFIC: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_SPACES: Final = (" ", "\u00a0", "\u202f")
_MARKS: Final = (
    (".", ""),
    (",", ""),
    (".", ","),
    (",", "."),
    *((mark, space) for mark in ".," for space in (*_SPACES, "'", "\u2019")),
)
"""Decimal mark and sign between thousands, the plainest first."""


@dataclass(frozen=True, slots=True)
class NumberForm:
    """A way in which all numbers of a column can be read.

    Attributes:
        decimal: What stands before the decimals.
        group: What stands between thousands; empty: nothing.
        scale: Most decimals of a number.
        is_fixed: All numbers have as many.
        whole_digits: Most digits before the decimals.
        is_scientific: Some have exponents.
    """

    decimal: str = "."
    group: str = ""
    scale: int = 0
    is_fixed: bool = True
    whole_digits: int = 1
    is_scientific: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether a read step takes such numbers as they are."""
        return not self.group and (self.decimal == "." or not self.scale)

    @property
    def is_integer(self) -> bool:
        """Whether no number has decimals."""
        return not self.scale and not self.is_scientific

    @property
    def fits(self) -> bool:
        """Whether 64 bits hold every number, or 18 digits of a decimal."""
        return self.whole_digits + self.scale <= _MAX_DIGITS


def find_number_forms(texts: Collection[str]) -> list[NumberForm]:
    """Find every way in which all texts are numbers, the plainest first.

    Digits with leading zeros are no numbers: ``01234`` is a code, of which a number would lose the zero.
    """
    if not texts or any(_has_leading_zero(text) for text in texts):
        return []
    forms = [form for decimal, group in _marks_in(texts) if (form := _match(texts, decimal, group)) is not None]
    if not forms and all(_SCIENTIFIC.fullmatch(text) for text in texts):
        return [NumberForm(is_scientific=True, scale=0)]
    return forms


def find_unread(texts: Collection[str]) -> set[str]:
    """Find the texts that the way which reads most of them leaves out: ``12,5,0`` among ``3,25`` and ``1.000,50``."""
    ways = [_pattern_of(decimal, group) for decimal, group in _marks_in(texts)]
    return min(({text for text in texts if not way.fullmatch(text)} for way in ways), key=len, default=set())


def _marks_in(texts: Collection[str]) -> list[tuple[str, str]]:
    signs = {".", *"".join(texts)}
    return [(decimal, group) for decimal, group in _MARKS if (group or decimal) in signs]


def _pattern_of(decimal: str, group: str) -> re.Pattern[str]:
    whole = rf"(?:[0-9]{{1,3}}(?:{re.escape(group)}[0-9]{{3}})+|[0-9]+)" if group else "[0-9]+"
    return re.compile(rf"[+-]?({whole})(?:{re.escape(decimal)}([0-9]+))?", re.ASCII)


def _match(texts: Collection[str], decimal: str, group: str) -> NumberForm | None:
    pattern = _pattern_of(decimal, group)
    parts = []
    for text in texts:
        found = pattern.fullmatch(text)
        if found is None:
            return None
        parts.append((found[1], found[2] or ""))
    if group and not any(group in whole for whole, _ in parts):
        return None
    scales = {len(second) for _, second in parts}
    if decimal == "," and not group and scales == {0}:
        return None  # the same as with a point
    return NumberForm(
        decimal=decimal,
        group=group,
        scale=max(scales),
        is_fixed=len(scales) == 1,
        whole_digits=max(len(whole) - whole.count(group or " ") for whole, _ in parts),
    )


def _has_leading_zero(text: str) -> bool:
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
