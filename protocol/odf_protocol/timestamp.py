"""Points in time with nanoseconds, which ``datetime`` cannot hold.

Source: ODF "Metadata Block" (system time keeps nanoseconds; the column in data keeps milliseconds); RFC 3339.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Self

from odf_protocol.errors import MalformedError

SECONDS_PER_DAY = 86_400
NANOSECONDS_PER_SECOND = 1_000_000_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()

# RFC 3339 writes four digits of year, so this is also all that a manifest can say.
_FIRST_SECOND = (date(1, 1, 1).toordinal() - _EPOCH_DAY) * SECONDS_PER_DAY
_LAST_SECOND = (date(9999, 12, 31).toordinal() - _EPOCH_DAY + 1) * SECONDS_PER_DAY - 1

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Unix seconds and nanoseconds in UTC, years 1 to 9999, no leap seconds.

    >>> str(Timestamp.parse("2020-01-01T14:00:00.5+02:00"))
    '2020-01-01T12:00:00.500Z'
    """

    seconds: int
    nanoseconds: int = 0

    def __post_init__(self) -> None:
        if not (_FIRST_SECOND <= self.seconds <= _LAST_SECOND and 0 <= self.nanoseconds < NANOSECONDS_PER_SECOND):
            raise MalformedError(
                "timestamp", expected="years 1 to 9999, nanoseconds below 10**9", found=(self.seconds, self.nanoseconds)
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read RFC 3339 with any offset and up to nine fraction digits.

        Raises:
            MalformedError: Not RFC 3339, no such day or hour, or a leap second.
        """
        found = _RFC3339.fullmatch(text)
        if found is None:
            raise MalformedError("timestamp", expected="RFC 3339", found=repr(text))
        year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
        fraction, sign, offset_hours, offset_minutes = found.groups()[6:]
        offset_s = (int(offset_hours) * 60 + int(offset_minutes)) * 60 if sign else 0
        try:
            days = date(year, month, day).toordinal() - _EPOCH_DAY
        except ValueError as error:
            raise MalformedError("timestamp", expected="a day of the calendar", found=repr(text)) from error
        # Second 60 is rejected: a block could carry it, a replay on another system could not.
        if hour > 23 or minute > 59 or second > 59 or offset_s >= SECONDS_PER_DAY:
            raise MalformedError("timestamp", expected="hours to 23, minutes and seconds to 59", found=repr(text))
        seconds = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second
        return cls(seconds + (offset_s if sign == "-" else -offset_s), int((fraction or "").ljust(9, "0")))

    @classmethod
    def parse_or_day(cls, text: str) -> Self:
        """Read RFC 3339, or a day alone, which means its first moment in UTC.

        >>> str(Timestamp.parse_or_day("2020-10-01"))
        '2020-10-01T00:00:00Z'

        Raises:
            MalformedError: Neither of them.
        """
        return cls.parse(f"{text}T00:00:00Z" if _DAY.fullmatch(text) else text)

    @classmethod
    def from_unix_ms(cls, unix_ms: int) -> Self:
        """Make one from milliseconds since 1970, which may be negative."""
        seconds, milliseconds = divmod(unix_ms, 1000)
        return cls(seconds, milliseconds * 1_000_000)

    @classmethod
    def from_day_of_year(cls, year: int, ordinal: int, second_of_day: int, nanoseconds: int) -> Self:
        """Make one from the parts of the FlatBuffers struct: ``ordinal`` counts days from 1.

        Raises:
            MalformedError: No such day, or a leap second.
        """
        if not 1 <= year <= 9999:
            raise MalformedError("timestamp", expected="years 1 to 9999", found=year)
        first_day = date(year, 1, 1).toordinal()
        if not 1 <= ordinal <= date(year, 12, 31).toordinal() - first_day + 1:
            raise MalformedError("timestamp", expected=f"a day of {year}", found=f"day {ordinal}")
        if not 0 <= second_of_day < SECONDS_PER_DAY:
            raise MalformedError("timestamp", expected="a second of the day below 86400", found=second_of_day)
        return cls((first_day + ordinal - 1 - _EPOCH_DAY) * SECONDS_PER_DAY + second_of_day, nanoseconds)

    def to_day_of_year(self) -> tuple[int, int, int, int]:
        """Return year, day of the year from 1, second of the day, nanoseconds."""
        days, second_of_day = divmod(self.seconds, SECONDS_PER_DAY)
        day = date.fromordinal(days + _EPOCH_DAY)
        return day.year, day.toordinal() - date(day.year, 1, 1).toordinal() + 1, second_of_day, self.nanoseconds

    @property
    def unix_ms(self) -> int:
        """Milliseconds since 1970, rounded towards the past."""
        return self.seconds * 1000 + self.nanoseconds // 1_000_000

    def truncated_to_ms(self) -> Self:
        """Drop what is finer than a millisecond, as the ``system_time`` column does."""
        return type(self)(self.seconds, self.nanoseconds // 1_000_000 * 1_000_000)

    def __str__(self) -> str:
        days, second_of_day = divmod(self.seconds, SECONDS_PER_DAY)
        hour, second = divmod(second_of_day, 3600)
        minute, second = divmod(second, 60)
        day = date.fromordinal(days + _EPOCH_DAY).isoformat()
        return f"{day}T{hour:02}:{minute:02}:{second:02}{_fraction(self.nanoseconds)}Z"


def _fraction(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return ""
    digits = f"{nanoseconds:09}"
    if digits.endswith("000000"):
        return "." + digits[:3]
    return "." + (digits[:6] if digits.endswith("000") else digits)
