r"""The text forms that a value of each type may have, as Spark SQL: for columns of lists, structs and times.

A form is checked in full before Spark casts, because Spark's casts forgive more than a data format may: they trim, take
`1.5f` for a double, `2020` for a timestamp and round decimals. So a text either denotes exactly one value of the type
or is refused, and it is the one that `exact_texts` finds without Spark, where all columns are of plain types.

Source: spec/ingest.md ING-4.
"""

from dataclasses import dataclass
from itertools import count

import pyarrow as pa

from odf_engines.records.carriers import carrier_of, quoted, spark_name_of
from odf_engines.records.exact_texts import LARGEST_UNSIGNED, form_of
from odf_engines.records.time_patterns import TimePatterns
from odf_protocol.errors import UnsupportedError

_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"

_UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class TextForm:
    """How the text of one column becomes a value.

    Attributes:
        value: SQL of the value in its carrier type; null if the text is null or denotes no value of the type.
        has_form: SQL that is true if the text has a form of the type, in range or not.
        expected: The form, in words.
        misfit: What is wrong with a text that has the form and denotes no value.
    """

    value: str
    has_form: str
    expected: str
    misfit: str = "out of range"


_RFC_3339 = TimePatterns()


def text_form_of(
    text: str, target: pa.DataType, times: TimePatterns = _RFC_3339, names: "count[int] | None" = None
) -> TextForm:
    """Say how the SQL expression `text` of type string becomes a value of the slice type `target`.

    Args:
        text: A column or variable; it is repeated in the result.
        target: A type from `slice_type_of`.
        times: How dates and timestamps are written.
        names: Source of numbers for variables of nested types.

    Raises:
        UnsupportedError: Texts cannot denote values of `target`.
    """
    names = names or count()
    types = pa.types
    if types.is_list(target) or types.is_fixed_size_list(target):
        return _list_form(text, target, times, names)
    if types.is_struct(target):
        return _struct_form(text, target, times, names)
    if types.is_time(target):
        return _time_form(text, target)
    pattern = times.date if types.is_date(target) else times.timestamp if types.is_timestamp(target) else None
    if pattern is not None:
        form = text_form_of(pattern.rewrite(text), target)
        what = "a day" if types.is_date(target) else "a time"
        return TextForm(form.value, pattern.matches(text), f"{what} written as {pattern.text}", form.misfit)
    found = form_of(target)
    if found is None:
        raise UnsupportedError("column type in a source of text", found=target)
    has_form = "true" if types.is_string(target) else _matches(text, found.pattern)
    condition, value = _value_of(text, target)
    value = _guarded(f"{has_form}{condition and f' AND {condition}'}", value)
    return TextForm(text if types.is_string(target) else value, has_form, found.expected, found.misfit)


def _value_of(text: str, target: pa.DataType) -> tuple[str, str]:
    """Give SQL of the value of a text that has its form, and of what else it must be."""
    types = pa.types
    if types.is_boolean(target):
        return "", f"lower({text}) = 'true'"
    if types.is_timestamp(target):
        value = f"date_trunc('MILLISECOND', {_try_cast(f'upper({text})', 'TIMESTAMP')})"
        # An offset leads out of the years that can be written.
        return f"{value} BETWEEN TIMESTAMP'0001-01-01T00:00:00Z' AND TIMESTAMP'9999-12-31T23:59:59.999Z'", value
    name = spark_name_of(carrier_of(target))
    value = _try_cast(text, name)
    if target in LARGEST_UNSIGNED:
        return f"{value} BETWEEN 0 AND {LARGEST_UNSIGNED[target]}", value
    if types.is_floating(target):
        # Digits that overflow to infinity are out of range; infinity in words is a value.
        return f"(abs({value}) < CAST('Infinity' AS {name}) OR isnan({value}) OR NOT {text} RLIKE r'[0-9]')", value
    if types.is_decimal(target):
        # Only texts that lose no digit are cast: the cast itself would round.
        fraction = rf"\.[0-9]{{0,{target.scale}}}0*"
        return _matches(text, rf"[+-]?(?:[0-9]+(?:{fraction})?|{fraction})"), value
    return "", value


def _list_form(text: str, target: pa.DataType, times: TimePatterns, names: "count[int]") -> TextForm:
    variable = f"item{next(names)}"
    item = text_form_of(variable, target.value_type, times, names)
    parsed = f"from_json({text}, 'ARRAY<STRING>')"
    missing = f"{variable} IS NULL" if target.value_field.nullable else "false"
    good = f"forall({parsed}, {variable} -> {missing} OR ({item.value}) IS NOT NULL)"
    if pa.types.is_fixed_size_list(target):
        good += f" AND size({parsed}) = {target.list_size}"
    has_form = rf"coalesce({text} RLIKE r'^\s*\[' AND {parsed} IS NOT NULL, false)"
    value = _guarded(f"{has_form} AND {good}", f"transform({parsed}, {variable} -> {item.value})")
    return TextForm(value, has_form, f"a JSON array of: {item.expected}", "an item does not fit")


def _struct_form(text: str, target: pa.DataType, times: TimePatterns, names: "count[int]") -> TextForm:
    schema = ", ".join(f"{quoted(field.name)}: STRING" for field in target)
    parsed = f"from_json({text}, '{_escaped(f'STRUCT<{schema}>')}')"
    good, values, expected = [], [], []
    for field in target:
        member = f"{parsed}.{quoted(field.name)}"
        form = text_form_of(member, field.type, times, names)
        missing = f"{member} IS NULL" if field.nullable else "false"
        good.append(f"({missing} OR ({form.value}) IS NOT NULL)")
        values.append(f"'{_escaped(field.name)}', {form.value}")
        expected.append(f"{field.name}: {form.expected}")
    has_form = rf"coalesce({text} RLIKE r'^\s*\{{' AND {parsed} IS NOT NULL, false)"
    value = _guarded(" AND ".join([has_form, *good]), f"named_struct({', '.join(values)})")
    return TextForm(value, has_form, f"a JSON object with {'; '.join(expected)}", "a member does not fit")


def _time_form(text: str, target: pa.DataType) -> TextForm:
    per_second = _UNITS_PER_SECOND[target.unit]
    digits = len(str(per_second)) - 1
    fraction = rf"(?:\.[0-9]{{1,{digits}}})?" if digits else ""
    has_form = _matches(text, _CLOCK + fraction)
    parts = [
        f"CAST(substr({text}, {at}, 2) AS BIGINT) * {seconds * per_second}"
        for at, seconds in ((1, 3600), (4, 60), (7, 1))
    ]
    if digits:
        parts.append(f"CAST(rpad(substr({text}, 10), {digits}, '0') AS BIGINT)")
    value = f"CAST({' + '.join(parts)} AS {spark_name_of(carrier_of(target))})"
    return TextForm(
        _guarded(has_form, value), has_form, f"a time of day such as 23:59:59, up to {digits} fraction digits"
    )


def _guarded(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN {value} END"


def _matches(text: str, pattern: str) -> str:
    return rf"{text} RLIKE r'^(?:{pattern})\z'"


def _try_cast(text: str, name: str) -> str:
    return f"try_cast({text} AS {name})"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
