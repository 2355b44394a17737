"""Texts in the plainest form of their type, converted many at once.

Nearly every value of nearly every source is written plainly: digits with a sign, a point between them, a day as
``2020-12-31``. Arrow recognises and converts a million of these in a tenth of a second. What is not so plain is not
judged here, right or wrong: ``exact_texts`` has the last word about it. So nothing here says that a value is bad, and
what is converted here has the value that it has there.

Source: spec/ingest.md ING-4.
"""

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.records.carriers import TIMESTAMP, carrier_of

_SMALLER = {pa.int8(): 2**7, pa.int16(): 2**15, pa.int32(): 2**31}
_UNSIGNED = {pa.uint8(): 2**8 - 1, pa.uint16(): 2**16 - 1, pa.uint32(): 2**32 - 1, pa.uint64(): 2**63 - 1}

# Digits that fit 64 bits whatever they are; longer ones may not.
_INTEGER = r"^-?[0-9]{1,18}$"
_FLOAT = r"^-?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?$"
# From the first year on that all calendars here agree about; days that no month has are found by their numbers.
_DAY = r"^(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,3})?[Zz]?)?"


def convert_plain(texts: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.BooleanArray]:
    """Convert the texts that are plain.

    Args:
        texts: Strings, some null.
        target: A type for which ``exact_texts.form_of`` knows a form.

    Returns:
        Values in the carrier type, null where a text is null or not plain; and which texts are null or plain.
    """
    types = pa.types
    if types.is_string(target):
        return texts, pc.is_in(pc.is_null(texts), pa.array([True, False]))
    if types.is_boolean(target):
        lower = pc.ascii_lower(texts)
        is_plain = pc.is_in(lower, pa.array(["true", "false"]))
        return pc.if_else(is_plain, pc.equal(lower, "true"), None), _or_null(is_plain, texts)
    if types.is_integer(target):
        return _integers(texts, target)
    if types.is_floating(target):
        return _floats(texts, target)
    if types.is_decimal(target):
        return _decimals(texts, target)
    if types.is_time(target):
        # There are few, and one form only.
        return pa.nulls(len(texts), carrier_of(target)), pc.is_null(texts)
    return _times(texts, target)


def _integers(texts: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.BooleanArray]:
    is_plain = _matches(texts, _INTEGER)
    values = _only(texts, is_plain).cast(pa.int64())
    if target in _UNSIGNED:
        fits = pc.and_(pc.greater_equal(values, 0), pc.less_equal(values, _UNSIGNED[target]))
    elif target in _SMALLER:
        fits = pc.and_(pc.greater_equal(values, -_SMALLER[target]), pc.less(values, _SMALLER[target]))
    else:
        return values, _or_null(is_plain, texts)
    fits = pc.fill_null(fits, False)
    return pc.if_else(fits, values, None).cast(carrier_of(target)), _or_null(fits, texts)


def _floats(texts: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.BooleanArray]:
    values = _only(texts, _matches(texts, _FLOAT)).cast(target)
    # Digits that overflow are no value.
    fits = pc.fill_null(pc.is_finite(values), False)
    return pc.if_else(fits, values, None), _or_null(fits, texts)


def _decimals(texts: pa.Array, target: pa.Decimal128Type) -> tuple[pa.Array, pa.BooleanArray]:
    whole, scale = target.precision - target.scale, target.scale
    if not whole:  # the plainest form has a digit before the point
        return pa.nulls(len(texts), target), pc.is_null(texts)
    fraction = rf"(?:\.[0-9]{{1,{scale}}})?" if scale else ""
    is_plain = _matches(texts, rf"^-?[0-9]{{1,{whole}}}{fraction}$")
    return _only(texts, is_plain).cast(target), _or_null(is_plain, texts)


def _times(texts: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.BooleanArray]:
    is_day = pa.types.is_date32(target)
    is_plain = _matches(texts, f"{_DAY}$" if is_day else f"{_DAY}{_CLOCK}$")
    plain = _only(texts, is_plain)
    try:
        values = _cast_times(plain, target)
    except pa.ArrowInvalid:
        is_plain = pc.and_(is_plain, pc.fill_null(_are_days(plain), False))
        values = _cast_times(_only(texts, is_plain), target)
    return values, _or_null(is_plain, texts)


def _cast_times(texts: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_date32(target):
        return texts.cast(target)
    # Without a zone a time is in UTC; Arrow casts either all texts with a zone or all without.
    return pc.ascii_trim(pc.ascii_upper(texts), "Z").cast(pa.timestamp("ms")).cast(pa.int64()).cast(TIMESTAMP)


def _are_days(texts: pa.Array) -> pa.BooleanArray:
    """Say which texts, whose form is right, begin with a day that its month has."""
    year, month, day = (pc.utf8_slice_codeunits(texts, a, b).cast(pa.int32()) for a, b in ((0, 4), (5, 7), (8, 10)))
    by_four, by_hundred, by_four_hundred = (
        pc.equal(pc.subtract(year, pc.multiply(pc.divide(year, n), n)), 0) for n in (4, 100, 400)
    )
    is_leap = pc.or_(pc.and_(by_four, pc.invert(by_hundred)), by_four_hundred)
    is_short = pc.is_in(month, pa.array([4, 6, 9, 11], pa.int32()))
    february = pc.if_else(is_leap, 29, 28)
    return pc.less_equal(day, pc.if_else(pc.equal(month, 2), february, pc.if_else(is_short, 30, 31)))


def _matches(texts: pa.Array, pattern: str) -> pa.BooleanArray:
    # A dollar sign means the end of the text here, also where a line ends before it (RE2).
    return pc.fill_null(pc.match_substring_regex(texts, pattern), False)


def _only(texts: pa.Array, chosen: pa.BooleanArray) -> pa.Array:
    return pc.if_else(chosen, texts, pa.scalar(None, pa.string()))


def _or_null(is_plain: pa.BooleanArray, texts: pa.Array) -> pa.BooleanArray:
    return pc.or_(pc.fill_null(is_plain, False), pc.is_null(texts))
