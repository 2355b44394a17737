"""Values of texts: every text denotes one value of a type or is bad, by marks, patterns and words that are declared.

Source: clauses CONV-5 and VALID-6 in ``spec/plug-ins/quality.md``; ING-4 and ING-16 in ``spec/ingest.md``.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.records.carriers import slice_type_of
from odf_engines.records.source_records import FORM, MISFIT
from odf_engines.records.time_patterns import RFC_3339, parse_pattern
from odf_engines.validation.contract import ParameterError
from odf_protocol.errors import OdfError, UnsupportedError
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.schema_ddl import parse_ddl
from odf_quality.local_times import REJECT, LocalTimes, read_local_times

_SPACES: Final = " \u00a0\u202f"  # a space, one that does not break, a narrow one
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_RFC_DAY: Final = "([0-9]{4})-([0-9]{2})-([0-9]{2})"
_RFC_CLOCK: Final = r"(?:[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
_PARTS: Final = ("year", "month", "day", "hour", "minute", "second", "f", "z")
_WORDS: Final = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


@dataclass(frozen=True, slots=True)
class Judged:
    """New values for some texts.

    Attributes:
        values: One for each text, null for those that have none.
        faults: Code, message, and which texts have it; a null verdict is none.
    """

    values: pa.Array
    faults: Sequence[tuple[str, str, pa.BooleanArray]] = ()


def judge_each(texts: pa.Array, kind: pa.DataType, judge: Callable[[str], Any], faults: dict[str, str]) -> Judged:
    """Judge each different text once.

    Args:
        texts: Some null, which stay null.
        kind: Of the new values.
        judge: Gives the new value, or one of the ``faults`` as a ``Bad``.
        faults: Messages by code.
    """
    encoded = texts.dictionary_encode()
    found = [judge(text) for text in encoded.dictionary.to_pylist()]
    new = pa.array([None if isinstance(each, Bad) else each for each in found], kind)
    codes = pa.array([each.code if isinstance(each, Bad) else None for each in found], pa.string())
    code = codes.take(encoded.indices)
    return Judged(new.take(encoded.indices), [(name, stated, pc.equal(code, name)) for name, stated in faults.items()])


@dataclass(frozen=True, slots=True)
class Bad:
    """A text that has no value: the code of what is wrong with it."""

    code: str


@dataclass(frozen=True, kw_only=True)
class ValueForm:
    """How values of a type are written, as ``Cast`` declares it; without further words as ING-4 has it."""

    type: str
    decimal: str = "."
    thousands: str | None = None
    formats: list[str] = field(default_factory=list)
    true: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)


def find_value_type(text: str) -> pa.DataType:
    """Return the type of that name, as in ``ddlSchema``.

    Raises:
        ParameterError: It is none of a plain value.
    """
    try:
        kind = slice_type_of(arrow_schema_of(parse_ddl([f"x {text}"])).field(0).type)
    except OdfError:
        kind = None
    types = pa.types
    if kind is not None and (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
    ):
        return kind
    expected = "BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(digits,scale), DATE or TIMESTAMP"
    raise ParameterError("type", expected=expected, found=text, known=expected.replace(" or", ",").split(", "))


def find_judge(parameters: Any, kind: pa.DataType) -> tuple[Callable[[str], Any], dict[str, str]]:
    """Return what makes a value of a text, or says as ``Bad`` why it has none, and messages by code.

    Args:
        parameters: A ``ValueForm``, or what has its attributes.
        kind: Of the values.

    Raises:
        ParameterError: The declaration cannot be followed.
    """
    types = pa.types
    is_time = types.is_date32(kind) or types.is_timestamp(kind)
    is_stamp = types.is_timestamp(kind)
    if not is_stamp and (zone := getattr(parameters, "zone", None)):
        raise ParameterError("zone", expected="none but for TIMESTAMP", found=zone)
    for name, belongs in (("formats", is_time), ("true", types.is_boolean(kind)), ("false", types.is_boolean(kind))):
        if getattr(parameters, name) and not belongs:
            raise ParameterError(
                name, expected=f"none for {parameters.type}", found=", ".join(getattr(parameters, name))
            )
    misfit = {MISFIT: f"too large or too exact for {parameters.type}"}
    if types.is_boolean(kind):
        words = _read_words(parameters)
        reported = f"not one of {', '.join(words)}"
        return lambda text: words.get(text.casefold(), Bad(FORM)), {FORM: reported}
    if is_time:
        has_time = types.is_timestamp(kind)
        formats = parameters.formats or [RFC_3339]
        patterns = [_read_pattern(text, has_time=has_time) for text in formats]
        reported = f"not written as {' or '.join(formats)}, or no day that there is"
        faults = {FORM: reported, MISFIT: "outside of the years 1 to 9999"}
        local = _read_zone(parameters) if has_time else None
        make = partial(_make_time, local=local) if has_time else _make_day
        return lambda text: _first_of(patterns, text, make), faults | ({} if local is None else local.faults)
    form = _read_number_form(parameters, is_whole=types.is_integer(kind), is_float=types.is_floating(kind))
    reported = f"not a {'whole ' if types.is_integer(kind) else ''}number"
    fits = partial(_whole if types.is_integer(kind) else _decimal if types.is_decimal(kind) else _float, kind=kind)
    if not types.is_integer(kind):
        reported += f" with '{parameters.decimal}' before its decimals"
    if parameters.thousands:
        reported += f" and '{parameters.thousands}' between thousands"
    return lambda text: Bad(FORM) if (plain := form(text)) is None else fits(plain), {FORM: reported, **misfit}


def _read_words(parameters: Any) -> dict[str, bool]:
    true, false = parameters.true or ["true"], parameters.false or ["false"]
    words = {word.casefold(): True for word in true}
    for word in false:
        if word.casefold() in words:
            raise ParameterError("false", expected="words that are not those of true", found=word)
        words[word.casefold()] = False
    return words


def _read_number_form(parameters: Any, *, is_whole: bool, is_float: bool) -> Callable[[str], str | None]:
    """Return what rewrites a number to plain digits with a point; None for what is none."""
    decimal, thousands = parameters.decimal, parameters.thousands
    for name, mark in (("decimal", decimal), ("thousands", thousands)):
        if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in "+-"):
            raise ParameterError(name, expected="one character that is no digit, letter or sign", found=repr(mark))
    if decimal == thousands and not is_whole:
        raise ParameterError("thousands", expected="another mark than that of decimals", found=repr(thousands))
    marks = "" if thousands is None else _SPACES if thousands in _SPACES else thousands
    grouped = f"|[0-9]{{1,3}}(?:[{re.escape(marks)}][0-9]{{3}})+" if marks else ""
    fraction = "" if is_whole else f"(?:{re.escape(decimal)}([0-9]+))?"
    exponent = "(?:[eE]([+-]?[0-9]{1,4}))?" if is_float else ""
    pattern = re.compile(f"([+-]?)([0-9]+{grouped}){fraction}{exponent}", re.ASCII)
    removed = str.maketrans("", "", marks)

    def rewrite(text: str) -> str | None:
        if is_float and text.lstrip("+-").lower() in _WORDS and len(text) - len(text.lstrip("+-")) <= 1:
            return text
        found = pattern.fullmatch(text)
        if found is None:
            return None
        sign, whole, *rest = found.groups()
        fraction = f".{rest[0]}" if rest and rest[0] else ""
        exponent = f"e{rest[1]}" if len(rest) > 1 and rest[1] else ""
        return f"{sign}{whole.translate(removed)}{fraction}{exponent}"

    return rewrite


def _whole(plain: str, kind: pa.DataType) -> Any:
    digits = plain.lstrip("+-").lstrip("0")
    if len(digits) > 20:  # more than 64 bits have; Python bounds how many it reads
        return Bad(MISFIT)
    number = int(digits or "0") * (-1 if plain.startswith("-") else 1)
    least = -(2 ** (kind.bit_width - 1)) if pa.types.is_signed_integer(kind) else 0
    return number if least <= number < 2**kind.bit_width + least else Bad(MISFIT)


def _decimal(plain: str, kind: pa.Decimal128Type) -> Any:
    whole, _, fraction = plain.lstrip("+-").partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    if len(whole) > kind.precision - kind.scale or len(fraction) > kind.scale:
        return Bad(MISFIT)
    return Decimal(f"{'-' if plain.startswith('-') else ''}{whole or 0}.{fraction or 0}")


def _float(plain: str, kind: pa.DataType) -> Any:
    if (word := plain.lstrip("+-").lower()) in _WORDS:
        return -_WORDS[word] if plain.startswith("-") else _WORDS[word]
    number = float(plain)
    if pa.types.is_float32(kind):
        number = pa.scalar(number).cast(kind, safe=False).as_py()
    return number if math.isfinite(number) else Bad(MISFIT)


def _read_pattern(text: str, *, has_time: bool) -> "tuple[re.Pattern[str], tuple[str, ...]]":
    if text.lower() == RFC_3339:
        return re.compile(_RFC_DAY + (_RFC_CLOCK if has_time else ""), re.ASCII), _PARTS if has_time else _PARTS[:3]
    try:
        found = parse_pattern(text, has_time=has_time)
    except UnsupportedError as error:
        raise ParameterError("formats", expected=str(error.supported), found=text) from error
    assert found is not None
    return re.compile(found.form, re.ASCII), found.groups


def _first_of(
    patterns: "Sequence[tuple[re.Pattern[str], tuple[str, ...]]]", text: str, make: Callable[[dict[str, str]], Any]
) -> Any:
    """Return what the first pattern that a text has the form of, and that gives a day that there is, makes of it."""
    for pattern, groups in patterns:
        if (found := pattern.fullmatch(text)) is not None:
            try:
                return make({name: part for name, part in zip(groups, found.groups(), strict=True) if part})
            except ValueError:
                continue
    return Bad(FORM)


def _make_day(parts: dict[str, str]) -> date:
    year = int(parts["year"]) if "year" in parts else _full_year(int(parts["short year"]))
    return date(year, int(parts["month"]), int(parts["day"]))


def _full_year(short: int) -> int:
    return short + (1900 if short >= 69 else 2000)


def _read_zone(parameters: Any) -> LocalTimes | None:
    zone, rules = getattr(parameters, "zone", None), ("ambiguous", "missing")
    if zone is not None:
        return read_local_times(zone, *(getattr(parameters, name) for name in rules))
    for name in rules:
        if (rule := getattr(parameters, name, REJECT)) != REJECT:
            raise ParameterError(name, expected="a zone beside it", found=rule)
    return None


def _make_time(parts: dict[str, str], local: LocalTimes | None = None) -> Any:
    day = _make_day(parts)
    hour, minute, second = (int(parts.get(name, "0")) for name in ("hour", "minute", "second"))
    moment = datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=UTC)
    # What is finer than a millisecond is dropped towards the past (ING-5).
    moment += int(parts.get("f", "0")[:3].ljust(3, "0")) * _MS
    if local is not None and "z" not in parts:
        try:
            found = local.to_utc(moment.replace(tzinfo=None))
        except OverflowError:
            return Bad(MISFIT)
        return Bad(found) if isinstance(found, str) else (found - _EPOCH) // _MS
    zone = parts.get("z", "Z")
    if zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        if hours > 23 or minutes > 59:
            raise ValueError(zone)
        offset = timedelta(hours=hours, minutes=minutes)
        try:
            moment += offset if zone[0] == "-" else -offset
        except OverflowError:
            return Bad(MISFIT)
    return (moment - _EPOCH) // _MS
