"""When a schedule comes round: every so often, or at the times of a cron expression. Pure; the time is passed in.

Source: clauses SCHED-2 and SCHED-3 in ``spec/plug-ins/schedules.md``.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_EVERY: Final = re.compile(r"([1-9][0-9]{0,7})([smhd])", re.ASCII)
LONGEST_EVERY_S: Final = 366 * 86_400  # guess: what comes round less often is nobody's schedule
LONGEST_TEXT: Final = 200
"""Characters of a cron expression or a zone.  # guess: each minute written out has 170"""
_CRON_FIELDS: Final = 5


@dataclass(frozen=True, slots=True)
class Every:
    """So many seconds after it began the last time; at once where it never did."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Cron:
    """The times of a cron expression of five fields, by the clocks of a zone."""

    expression: str
    zone: tzinfo


Timing = Every | Cron


def parse_every(text: str) -> Every:
    """Read ``90s``, ``15m``, ``6h`` or ``1d``.

    Raises:
        ValueError: It is something else, or longer than ``LONGEST_EVERY_S``; the message says what was expected.
    """
    found = _EVERY.fullmatch(text)
    seconds = int(found[1]) * _UNITS_S[found[2]] if found else 0
    if not 1 <= seconds <= LONGEST_EVERY_S:
        raise ValueError(f"expected a number with s, m, h or d, from 1s to 366d, such as 15m, found {_cut(text)!r}")
    return Every(seconds)


def parse_cron(expression: str, zone: str) -> Cron:
    """Read minute, hour, day of month, month, day of week, and the name of a zone such as ``Europe/Berlin``.

    Raises:
        ValueError: One of them cannot be used, or no such time comes; the message says what was expected.
    """
    if len(expression) > LONGEST_TEXT or len(expression.split()) != _CRON_FIELDS:
        raise ValueError(
            f"expected minute, hour, day of month, month and day of week, such as '30 4 * * *', found "
            f"{_cut(expression)!r}"
        )
    cron = Cron(expression, parse_zone(zone))
    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(f"expected a cron expression, found {_cut(expression)!r}: {error}") from error
    if find_next_ms(cron, _FIRST_MS) is None:
        raise ValueError(f"expected a time that comes, found {_cut(expression)!r}, which never does")
    return cron


def parse_zone(text: str) -> tzinfo:
    """Find a time zone by its name in the tz database.

    Raises:
        ValueError: This machine knows none of this name.
    """
    if text.upper() == "UTC":  # also where the machine has no database
        return UTC
    try:
        if len(text) <= LONGEST_TEXT:
            return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise ValueError(f"expected a zone that this machine knows, such as Europe/Berlin or UTC, found {_cut(text)!r}")


def find_next_ms(timing: Timing, after_ms: int) -> int | None:
    """Return the first time of a schedule that is later than ``after_ms``; None: there is none.

    Times are milliseconds since 1970 in UTC. What clocks of a zone skip comes right after the gap; what they show twice
    comes once, the first time (as Debian's cron does), but for expressions whose minute or hour begins with ``*``.
    """
    if isinstance(timing, Every):
        next_ms = after_ms + timing.seconds * 1000
        return next_ms if next_ms < _LAST_MS else None
    try:
        after = datetime.fromtimestamp(after_ms / 1000, timing.zone)
        for time in CronSim(timing.expression, after):
            time_ms = round(time.timestamp() * 1000)
            if after_ms < time_ms < _LAST_MS:  # in an hour that comes twice, the library begins anew at the first one
                return time_ms
    except (OverflowError, ValueError, OSError):
        pass  # beyond the years of this calendar
    return None


def spread_ms(key: bytes, after_ms: int, next_ms: int, max_ms: int) -> int:
    """Return how much later than ``next_ms`` one dataset is pulled, so that not all ask at the same moment (SCHED-4).

    Args:
        key: At least two bytes by which datasets differ; one dataset always gets the same share.
        after_ms: Since when ``next_ms`` is waited for; a tenth of that time is spread at most.
        next_ms: The time of the schedule.
        max_ms: At most so much.
    """
    return min(max_ms, (next_ms - after_ms) // 10) * int.from_bytes(key[:2]) // 0xFFFF


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


_FIRST_MS: Final = 1_577_836_800_000
"""2020-01-01: what does not come within fifty years of it, as far as the library looks, never does."""
_LAST_MS: Final = 253_402_214_400_000
"""9999-12-31: a day before no calendar goes on, so that what is added to a time is a time."""
