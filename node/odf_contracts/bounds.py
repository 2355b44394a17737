"""What a measured number must be: the operators of the Open Data Contract Standard, as a conjunction.

Source: Open Data Contract Standard v3, "Data Quality", "Valid Properties for Operator"; CONTRACT-3.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

OPERATORS: Final[dict[str, tuple[str, int]]] = {
    "mustBe": ("exactly {}", 1),
    "mustNotBe": ("anything but {}", 1),
    "mustBeGreaterThan": ("more than {}", 1),
    "mustBeGreaterOrEqualTo": ("at least {}", 1),
    "mustBeLessThan": ("less than {}", 1),
    "mustBeLessOrEqualTo": ("at most {}", 1),
    "mustBeBetween": ("{} to {}", 2),
    "mustNotBeBetween": ("not {} to {}", 2),
}
"""What each says, and how many numbers it takes."""

_TESTS: Final[dict[str, Callable[[float, Sequence[float]], bool]]] = {
    "mustBe": lambda value, of: value == of[0],
    "mustNotBe": lambda value, of: value != of[0],
    "mustBeGreaterThan": lambda value, of: value > of[0],
    "mustBeGreaterOrEqualTo": lambda value, of: value >= of[0],
    "mustBeLessThan": lambda value, of: value < of[0],
    "mustBeLessOrEqualTo": lambda value, of: value <= of[0],
    "mustBeBetween": lambda value, of: of[0] <= value <= of[1],
    "mustNotBeBetween": lambda value, of: not of[0] <= value <= of[1],
}


@dataclass(frozen=True, slots=True)
class BoundTest:
    """One operator with its numbers."""

    operator: str
    numbers: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """All of its tests hold for a number that is allowed."""

    tests: tuple[BoundTest, ...]

    def allows(self, value: float) -> bool:
        """Say whether a number is allowed; what is no number is not."""
        return not math.isnan(value) and all(_TESTS[each.operator](value, each.numbers) for each in self.tests)

    def describe(self) -> str:
        """Say what is allowed, in words."""
        return " and ".join(OPERATORS[each.operator][0].format(*map(number_text, each.numbers)) for each in self.tests)

    def is_empty(self, lowest: float = -math.inf, highest: float = math.inf) -> bool:
        """Say whether no number from ``lowest`` to ``highest`` is allowed."""
        edges = sorted({lowest, highest, *(number for each in self.tests for number in each.numbers)})
        between = [_middle(*pair) for pair in pairwise(edges)]
        candidates = [each for each in (*edges, *between) if lowest <= each <= highest]
        return not any(self.allows(each) for each in candidates)


def at_most(number: float) -> Bound:
    """Give the bound of what is at most a number."""
    return Bound((BoundTest("mustBeLessOrEqualTo", (number,)),))


def at_least(number: float) -> Bound:
    """Give the bound of what is at least a number."""
    return Bound((BoundTest("mustBeGreaterOrEqualTo", (number,)),))


def exactly(number: float) -> Bound:
    """Give the bound of one number."""
    return Bound((BoundTest("mustBe", (number,)),))


def number_text(number: float) -> str:
    """Write a number for people: whole ones whole, others with six digits."""
    if math.isinf(number) or math.isnan(number):
        return str(number)
    return f"{int(number):,}" if number == int(number) else f"{number:.6g}"


def _middle(low: float, high: float) -> float:
    if math.isinf(low):
        return high - 1 if not math.isinf(high) else 0.0
    return low + 1 if math.isinf(high) else (low + high) / 2
