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
_DIGITS: Final = "%Y%m%d"
_MAX_WAYS: Final = 4  # guess: files that people and programs fill in have two or three
_LOOKED_AT: Final = 20  # guess: texts that may show a further pattern
_ODD_SHARE: Final = 0.3  # guess: as of numbers
_SWAPPED: Final = str.maketrans("dm", "md")


@dataclass(frozen=True, slots=True)
class TimeForm:
    """A way in which all texts of a column are days or times.

    Attributes:
        pattern: As ``dateFormat`` and ``timestampFormat`` have it.
        has_clock: They are times, not days alone.
        has_zone: Each says its zone.
        other: Another pattern that reads all of them otherwise: day and month could be each other.
        further: Patterns of those that the first one does not read.
        odd: Texts of which no pattern makes a day, as there is none.
    """

    pattern: str
    has_clock: bool
    has_zone: bool = True
    other: str | None = None
    further: tuple[str, ...] = ()
    odd: frozenset[str] = frozenset()


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
        return _find_mixed_form(list(distinct))
    pattern, other = fitting[0], None
    swapped = pattern.translate(_SWAPPED)
    if swapped in fitting[1:] and any(_read(text, pattern) != _read(text, swapped) for text in distinct):
        if _measure_way(distinct, swapped) < _measure_way(distinct, pattern):
            pattern, swapped = swapped, pattern
        other = swapped
    return TimeForm(pattern, "%H" in pattern, "%z" in pattern or "%H" not in pattern, other)


def _find_mixed_form(distinct: Sequence[str]) -> TimeForm | None:
    """Find the patterns that together read texts that none reads alone; a text in the form of one may be no day."""
    left, chosen = list(distinct), list[str]()
    while left and len(chosen) < _MAX_WAYS:
        fitting = [pattern for text in left[:_LOOKED_AT] for pattern in _iter_patterns(text) if pattern != _DIGITS]
        if not fitting:
            break
        # The first of those that read most.
        pattern = max(dict.fromkeys(fitting), key=lambda each: sum(_is_time(text, each) for text in left))
        chosen.append(pattern)
        left = [text for text in left if not _is_time(text, pattern)]
    has_clock, has_zone = ("%H" in "".join(chosen)), ("%z" in "".join(chosen))
    is_of_a_kind = all(("%H" in each, "%z" in each) == (has_clock, has_zone) for each in chosen)
    no_days = [text for text in left if any(_compile(each)[0].fullmatch(text) for each in chosen)]
    if not chosen or not is_of_a_kind or len(no_days) < len(left) or len(left) > _ODD_SHARE * len(distinct):
        return None
    return TimeForm(chosen[0], has_clock, has_zone or not has_clock, further=tuple(chosen[1:]), odd=frozenset(left))


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
