r"""Texts that are not plain, one by one: the value that each denotes, or what is wrong with it.

A form is checked in full before a value is computed, so a text either denotes exactly one value of the type or is
rejected.

Source: clauses ING-4 and ING-6 in ``spec/ingest.md``.
"""

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache, partial
from typing import Final

import pyarrow as pa

from odf_engines.records.carriers import TIMESTAMP

_CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?"
_DAY: Final = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"

_TIME_OF_DAY: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_UNITS_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

LARGEST_UNSIGNED: Final = {pa.uint8(): 2**8 - 1, pa.uint16(): 2**16 - 1, pa.uint32(): 2**32 - 1, pa.uint64(): 2**64 - 1}
_MAX_DIGITS: Final = 20  # of the largest whole number

_DAY_MS: Final = 24 * 3600 * 1000
_EPOCH: Final = date(1970, 1, 1).toordinal()
_FIRST_MS: Final = (date(1, 1, 1).toordinal() - _EPOCH) * _DAY_MS
_END_MS: Final = (date(9999, 12, 31).toordinal() + 1 - _EPOCH) * _DAY_MS
_MAX_OFFSET: Final = 18 * 60  # minutes; Source: java.time.ZoneOffset


@dataclass(frozen=True, slots=True)
class ExactForm:
    """The form that texts of a type have.

    Attributes:
        pattern: Regular expression of a whole text, of Python and of RE2.
        expected: The form, in words.
        misfit: What is wrong with a text that has the form and denotes no value.
    """

    pattern: str
    expected: str
    misfit: str = "out of range"


def form_of(target: pa.DataType) -> ExactForm | None:
    """Say which form texts of a slice type have; None: another one than those that are judged here."""
    types = pa.types
    if types.is_string(target):
        return ExactForm(r"(?s:.*)", "text")
    if types.is_boolean(target):
        return ExactForm(r"(?i:true|false)", "true or false")
    if types.is_integer(target):
        return ExactForm(r"[+-]?[0-9]+", "a whole number")
    if types.is_float32(target) or types.is_float64(target):
        number = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
        return ExactForm(rf"[+-]?(?:{number}|(?i:nan|inf|infinity))", "a number, NaN or Infinity")
    if types.is_decimal(target):
        expected = f"a decimal number of up to {target.precision} digits, {target.scale} after the point"
        return ExactForm(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)", expected, "more digits than the type holds")
    if types.is_date32(target):
        return ExactForm(_DAY, "a day such as 2020-12-31", "no such day")
    if target == TIMESTAMP:
        return ExactForm(rf"{_DAY}(?:[Tt ]{_CLOCK})?", "an RFC 3339 time such as 2020-12-31T23:59:59Z", "no such time")
    if types.is_time(target):
        digits = _fraction_digits(target)
        fraction = rf"(?:\.[0-9]{{1,{digits}}})?" if digits else ""
        return ExactForm(_TIME_OF_DAY + fraction, f"a time of day such as 23:59:59, up to {digits} fraction digits")
    return None


def find_value(text: str, target: pa.DataType) -> object:
    """Give the value of a text that has the form of its type, as Arrow takes it; None if it denotes none.

    Days and times are counted: days, milliseconds from 1970 on; times of day in units of their type from midnight on.
    """
    return _value_finder(target)(text)


@cache
def _value_finder(target: pa.DataType) -> Callable[[str], object]:
    types = pa.types
    if types.is_boolean(target):
        return _boolean
    if types.is_integer(target):
        most = LARGEST_UNSIGNED.get(target, 2 ** (target.bit_width - 1) - 1)
        return partial(_integer, least=0 if target in LARGEST_UNSIGNED else -most - 1, most=most)
    if types.is_float32(target):
        return _single
    if types.is_floating(target):
        return _double
    if types.is_decimal(target):
        return partial(_decimal, whole_digits=target.precision - target.scale, scale=target.scale)
    if types.is_time(target):
        return partial(_ticks, digits=_fraction_digits(target))
    return _days if types.is_date32(target) else _milliseconds


def _fraction_digits(target: pa.DataType) -> int:
    return len(str(_UNITS_PER_SECOND[target.unit])) - 1


def _ticks(text: str, digits: int) -> int:
    seconds = (int(text[:2]) * 60 + int(text[3:5])) * 60 + int(text[6:8])
    return int(f"{seconds}{text[9:].ljust(digits, '0')}")


def _boolean(text: str) -> bool:
    return text.lower() == "true"


def _integer(text: str, least: int, most: int) -> int | None:
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        return None
    value = -int(digits) if text[0] == "-" else int(digits)
    return value if least <= value <= most else None


def _double(text: str) -> float | None:
    if text[-1] in "nNfFyY":
        return _word(text)
    value = float(text)
    # Digits that overflow are out of range; infinity in words is a value.
    return None if math.isinf(value) else value


def _single(text: str) -> float | None:
    value = _double(text)
    if value is None or not math.isfinite(value):
        return value
    if value and (exact := Decimal(text)) != Decimal(value):
        # Rounded twice, it could be off by one: what was lost is kept in the last bit, which no float of 32 bits has.
        if abs(Decimal(value)) > abs(exact):
            value = math.nextafter(value, 0.0)
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        (value,) = struct.unpack("<d", struct.pack("<q", bits | 1))
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return None


def _word(text: str) -> float | None:
    word = text.lstrip("+-").lower()
    if word != "nan":
        return -math.inf if text[0] == "-" else math.inf
    # Java takes a sign before its own spelling only.
    return math.nan if text[0] in "nN" or text[1:] == "NaN" else None


def _decimal(text: str, whole_digits: int, scale: int) -> Decimal | None:
    whole, _, fraction = text.lstrip("+-").partition(".")
    whole, lost = whole.lstrip("0"), fraction[scale:]
    if lost.strip("0") or len(whole) > whole_digits:
        return None
    return Decimal(f"{'-' if text[0] == '-' else ''}{whole or '0'}.{fraction[:scale]}")


def _days(text: str) -> int | None:
    try:
        return date(int(text[:4]), int(text[5:7]), int(text[8:10])).toordinal() - _EPOCH
    except ValueError:
        return None


_PARTS: Final = re.compile(r"(..):(..):(..)(?:\.([0-9]+))?(?:[Zz]|([+-])(..):(..))?")


def _milliseconds(text: str) -> int | None:
    days = _days(text)
    if days is None or len(text) == len("2020-12-31"):
        return None if days is None else days * _DAY_MS
    parts = _PARTS.fullmatch(text, len("2020-12-31T"))
    assert parts is not None
    hour, minute, second = (int(parts[each]) for each in (1, 2, 3))
    if hour > 23 or minute > 59 or second > 59:
        return None
    # What is finer is dropped towards the past.
    found = days * _DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + int((parts[4] or "")[:3].ljust(3, "0"))
    if parts[5] is not None:
        hours, minutes = int(parts[6]), int(parts[7])
        if minutes > 59 or hours * 60 + minutes > _MAX_OFFSET:
            return None
        found -= (hours * 60 + minutes) * 60_000 * (-1 if parts[5] == "-" else 1)
    # An offset leads out of the years that can be written.
    return found if _FIRST_MS <= found < _END_MS else None
