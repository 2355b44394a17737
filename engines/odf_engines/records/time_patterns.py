"""How dates and times are written in a source of text: `dateFormat` and `timestampFormat` of a read step.

A pattern is made of the directives of `strftime`, as in the `timestampFormat` of a file's event time (ODF "FromPath").
A text that has the pattern's form is rewritten to the form of RFC 3339, and only that form is converted, so that a text
denotes one value here as everywhere. Two neighbouring numbers without a character between them have all their digits;
others may lack leading zeros.

Source: ODF ReadStep "dateFormat", "timestampFormat"; spec/ingest.md ING-16.
"""

import re
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from odf_protocol.errors import UnsupportedError

RFC_3339: Final = "rfc3339"
"""The format that ODF asks for, and the one where none is named."""

# Directive: what it is, most digits.
_NUMBERS: Final = {
    "Y": ("year", 4),
    "m": ("month", 2),
    "d": ("day", 2),
    "H": ("hour", 2),
    "M": ("minute", 2),
    "S": ("second", 2),
}
_FRACTION: Final = "f"
_ZONE: Final = "z"
_KNOWN: Final = ", ".join(f"%{letter}" for letter in (*_NUMBERS, "y", _FRACTION, _ZONE, "%"))
_DAY: Final = {"year", "month", "day"}


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A pattern that was read.

    Attributes:
        text: As it stands in the manifest.
        form: Regular expression of the texts that have its form, a group for each part.
        groups: What the groups are, in their order.
    """

    text: str
    form: str
    groups: tuple[str, ...]

    def rewrite(self, texts: pa.Array) -> pa.Array:
        """Give texts in the form of RFC 3339; null where one has not the pattern's form."""
        # RE2 finds named groups only; a dollar sign means the end of the text there, also before a line end.
        numbers = count()
        named = re.sub(r"\((?!\?)", lambda _: f"(?P<g{next(numbers)}>", self.form)
        found = pc.extract_regex(texts, f"^(?s:{named})$")

        def part(name: str, digits: int) -> pa.Array:
            return pc.ascii_lpad(found.field(self.groups.index(name)), digits, "0")

        year = part("year", 4) if "year" in self.groups else _of_two_digits(part("short year", 2))
        chunks: list[Any] = [year, "-", part("month", 2), "-", part("day", 2)]
        if "hour" in self.groups:
            chunks += ["T", part("hour", 2)]
            for name in ("minute", "second"):
                chunks += [":", part(name, 2) if name in self.groups else "00"]
            if _FRACTION in self.groups:
                chunks += [".", part(_FRACTION, 1)]
            if _ZONE in self.groups:
                zone = part(_ZONE, 1)
                chunks.append(pc.replace_substring_regex(zone, r"([0-9]{2})([0-9]{2})$", r"\1:\2"))
        written = pc.binary_join_element_wise(*chunks, "")
        return pc.if_else(found.is_valid(), written, pa.scalar(None, pa.string()))


@dataclass(frozen=True, slots=True)
class TimePatterns:
    """How a source writes dates and timestamps; None: in the form of RFC 3339."""

    date: TimePattern | None = None
    timestamp: TimePattern | None = None

    def of(self, kind: pa.DataType) -> TimePattern | None:
        """Return the pattern of values of a type; None: they have none of their own."""
        if pa.types.is_date(kind):
            return self.date
        return self.timestamp if pa.types.is_timestamp(kind) else None


def parse_pattern(text: str | None, *, has_time: bool) -> TimePattern | None:
    """Read a format; None where it is RFC 3339, or none is named.

    Args:
        text: As it stands in the manifest.
        has_time: It is one of timestamps; one of dates has no time of day.

    Raises:
        UnsupportedError: It has a directive that is not known, the same part twice, or lacks one; or a time of a date.
    """
    if text is None or text.lower() == RFC_3339:
        return None
    what = "timestamp format" if has_time else "date format"
    found_chunks = re.findall(r"%.?|[^%]+", text, re.DOTALL)
    form, groups = "", []
    for position, chunk in enumerate(found_chunks):
        letter = chunk[1:]
        if not chunk.startswith("%") or chunk == "%%":
            form += re.escape("%" if chunk == "%%" else chunk)
            continue
        follows = found_chunks[position + 1] if position + 1 < len(found_chunks) else ""
        before = found_chunks[position - 1] if position else ""
        stands_alone = not (_is_number(before) or _is_number(follows) or before[-1:].isdigit() or follows[:1].isdigit())
        if letter in _NUMBERS:
            name, digits = _NUMBERS[letter]
            form += rf"([0-9]{{{1 if stands_alone and digits == 2 else digits},{digits}}})"
        elif letter == "y":
            name = "short year"
            form += r"([0-9]{2})"
        elif letter == _FRACTION:
            name = _FRACTION
            form += r"([0-9]{1,9})"
        elif letter == _ZONE:
            name = _ZONE
            form += r"([Zz]|[+-][0-9]{2}:?[0-9]{2})"
        else:
            raise UnsupportedError(what, found=text, supported=f"{RFC_3339}, or a pattern of {_KNOWN}")
        if name in groups:
            raise UnsupportedError(what, found=text, supported=f"each part of a time once, not %{letter} twice")
        groups.append(name)
    _require_parts(groups, text, what, has_time=has_time)
    return TimePattern(text, form, tuple(groups))


def _require_parts(groups: list[str], text: str, what: str, *, has_time: bool) -> None:
    years = {"year", "short year"}.intersection(groups)
    if len(years) != 1 or not _DAY - {"year"} <= set(groups):
        raise UnsupportedError(what, found=text, supported="a pattern with one year (%Y or %y), %m and %d")
    times = set(groups) - _DAY - {"short year"}
    if times and not has_time:
        raise UnsupportedError(
            what, found=text, supported="a pattern without time of day; timestampFormat is for those"
        )
    needed = {"minute": "hour", "second": "minute", _FRACTION: "second", _ZONE: "hour"}
    if lacking := [part for part, before in needed.items() if part in times and before not in times]:
        raise UnsupportedError(
            what, found=text, supported=f"a pattern with a {needed[lacking[0]]} before the {lacking[0]}"
        )


def _is_number(chunk: str) -> bool:
    return chunk.startswith("%") and chunk[1:] in {*_NUMBERS, "y", _FRACTION}


def _of_two_digits(years: pa.Array) -> pa.Array:
    """As POSIX reads `%y`: 69 to 99 are of the last century."""
    century = pc.if_else(pc.greater_equal(years, "69"), "19", "20")
    return pc.binary_join_element_wise(century, years, "")
