"""How the days and times of a column are written.

Patterns are those of ``dateFormat`` and ``timestampFormat`` (ING-16). Where days and months could be each other, the
pattern is taken with which neighbouring rows are nearer in time: files are mostly sorted by it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Final

from odf_engines.records.time_patterns import RFC_3339, TimePattern, parse_pattern

__all__ = ["TimeForm", "find_time_form"]

_DAYS: Final = (
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d-%m-%y",
    "%m-%d-%y",
    "%Y%m%d",
)
_CLOCKS: Final = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f")
_ZONES: Final = ("", "%z")
_PLAIN_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_PLAIN_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)
_YEARS: Final = range(1900, 2101)  # guess: eight digits of other years are numbers
_FEW: Final = 3
_SWAPPED: Final = str.maketrans("dm", "md")


@dataclass(frozen=True, slots=True)
class TimeForm:
    """A way in which all texts of a column are days or times.

    Attributes:
        pattern: As ``dateFormat`` and ``timestampFormat`` have it.
        has_clock: They are times, not days alone.
        has_zone: Each says its zone.
        other: Another pattern that reads all of them otherwise: day and month could be each other.
    """

    pattern: str
    has_clock: bool
    has_zone: bool = True
    other: str | None = None


def find_time_form(texts: Sequence[str]) -> TimeForm | None:
    """Find how days or times are written; None where the texts are neither.

    Args:
        texts: In the order of rows, at least one.
    """
    distinct = dict.fromkeys(texts)
    sample = next(iter(distinct))
    if not any(letter.isdigit() for letter in sample):
        return None
    if all(_PLAIN_DAY.fullmatch(text) and _is_time(text[:10], "%Y-%m-%d") for text in distinct):
        return TimeForm(RFC_3339, has_clock=False)
    if all(_PLAIN_TIME.fullmatch(text) and _is_time(text[:10], "%Y-%m-%d") for text in distinct):
        zoned = all(re.search(r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})$", text) for text in distinct)
        return TimeForm(RFC_3339, has_clock=True, has_zone=zoned)
    fitting = [pattern for pattern in _iter_patterns(sample) if _fits(distinct, pattern)]
    if not fitting:
        return None
    pattern, other = fitting[0], None
    swapped = pattern.translate(_SWAPPED)
    if swapped in fitting[1:] and any(_read(text, pattern) != _read(text, swapped) for text in distinct):
        if _measure_way(distinct, swapped) < _measure_way(distinct, pattern):
            pattern, swapped = swapped, pattern
        other = swapped
    return TimeForm(pattern, "%H" in pattern, "%z" in pattern or "%H" not in pattern, other)


def _iter_patterns(sample: str) -> Iterator[str]:
    """Yield the patterns whose form one text has."""
    has_clock = ":" in sample
    ends = [f"{gap}{clock}{zone}" for gap in (" ", "T") for clock in _CLOCKS for zone in _ZONES] if has_clock else [""]
    for day in _DAYS:
        for end in ends:
            if _read(sample, pattern := day + end) is not None:
                yield pattern


def _fits(texts: Sequence[str] | dict[str, None], pattern: str) -> bool:
    read = [_read(text, pattern) for text in texts]
    if any(each is None for each in read):
        return False
    # Eight digits may be a number as well.
    return not pattern.startswith("%Y%m") or (
        len(read) >= _FEW and all(each is not None and each.year in _YEARS for each in read)
    )


def _is_time(text: str, pattern: str) -> bool:
    return _read(text, pattern) is not None


@cache
def _compile(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    parsed = parse_pattern(pattern, has_time="%H" in pattern)
    assert isinstance(parsed, TimePattern)
    return re.compile(parsed.form, re.ASCII), parsed.groups


def _read(text: str, pattern: str) -> datetime | None:
    """Read a text by a pattern; None if it has not its form, or there is no such day."""
    form, groups = _compile(pattern)
    found = form.fullmatch(text)
    if found is None:
        return None
    part = dict(zip(groups, found.groups(), strict=True))
    year = int(part["year"]) if "year" in part else _full_year(int(part["short year"]))
    hour, minute, second = (int(part.get(name) or 0) for name in ("hour", "minute", "second"))
    try:
        return datetime(year, int(part["month"]), int(part["day"]), hour, minute, second)  # noqa: DTZ001 - compared alone
    except ValueError:
        return None


def _full_year(short: int) -> int:
    return short + (1900 if short >= 69 else 2000)  # as POSIX reads %y


def _measure_way(texts: dict[str, None], pattern: str) -> float:
    """Add up the seconds from each time to the next."""
    read = [each for text in texts if (each := _read(text, pattern)) is not None]
    return sum(abs((later - earlier).total_seconds()) for earlier, later in pairwise(read))
