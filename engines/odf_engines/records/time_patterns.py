"""How dates and times are written in a source of text: `dateFormat` and `timestampFormat` of a read step.

A pattern is made of the directives of `strftime`, as in the `timestampFormat` of a file's event time (ODF "FromPath").
A text that has the pattern's form is rewritten to the form of RFC 3339, and only that form is converted, so that a text
denotes one value here as everywhere. Two neighbouring numbers without a character between them have all their digits;
others may lack leading zeros.

Source: ODF ReadStep "dateFormat", "timestampFormat"; spec/ingest.md ING-16.
"""

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

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

    def matches(self, text: str) -> str:
        """Write SQL that says whether the SQL text `text` has the pattern's form."""
        return f"{text} RLIKE {self._whole}"

    @property
    def _whole(self) -> str:
        return _literal(rf"^(?:{self.form})\z")

    def rewrite(self, text: str) -> str:
        """Write SQL that gives the SQL text `text` in the form of RFC 3339; null if it has not the pattern's form."""

        def part(name: str) -> str:
            return f"regexp_extract({text}, {self._whole}, {self.groups.index(name) + 1})"

        year = f"lpad({part('year')}, 4, '0')" if "year" in self.groups else _of_two_digits(part("short year"))
        pieces = [year, "'-'", f"lpad({part('month')}, 2, '0')", "'-'", f"lpad({part('day')}, 2, '0')"]
        if "hour" in self.groups:
            pieces += ["'T'", f"lpad({part('hour')}, 2, '0')"]
            for name in ("minute", "second"):
                pieces += ["':'", f"lpad({part(name)}, 2, '0')" if name in self.groups else "'00'"]
            if _FRACTION in self.groups:
                pieces += ["'.'", part(_FRACTION)]
            if _ZONE in self.groups:
                pieces.append(rf"regexp_replace({part(_ZONE)}, r'([0-9]{{2}})([0-9]{{2}})$', '$1:$2')")
        return f"CASE WHEN {self.matches(text)} THEN concat({', '.join(pieces)}) END"


@dataclass(frozen=True, slots=True)
class TimePatterns:
    """How a source writes dates and timestamps; None: in the form of RFC 3339."""

    date: TimePattern | None = None
    timestamp: TimePattern | None = None

    def as_plain(self, target: pa.Schema) -> pa.Schema | None:
        """Give the schema that texts in plain form are converted to; None where a column has a form of its own."""
        types = pa.types
        own = any(
            (types.is_date(kind) and self.date is not None) or (types.is_timestamp(kind) and self.timestamp is not None)
            for kind in target.types
        )
        return None if own else target


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
    found_pieces = re.findall(r"%.?|[^%]+", text, re.DOTALL)
    form, groups = "", []
    for position, piece in enumerate(found_pieces):
        letter = piece[1:]
        if not piece.startswith("%") or piece == "%%":
            form += re.escape("%" if piece == "%%" else piece)
            continue
        follows = found_pieces[position + 1] if position + 1 < len(found_pieces) else ""
        before = found_pieces[position - 1] if position else ""
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


def _is_number(piece: str) -> bool:
    return piece.startswith("%") and piece[1:] in {*_NUMBERS, "y", _FRACTION}


def _of_two_digits(year: str) -> str:
    """As POSIX reads `%y`: 69 to 99 are of the last century."""
    return f"concat(CASE WHEN {year} >= '69' THEN '19' ELSE '20' END, {year})"


def _literal(form: str) -> str:
    escaped = form.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
