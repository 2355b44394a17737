"""What the texts of a column mean: its type, how a read step reads it, and what converters do where that is not enough.

Read steps take numbers, days and times in few forms, and all of a source in the same (ING-4, ING-16). What is written
otherwise, with a comma before the decimals or a word for nothing, is read as text, and converters make a value of it:
other than a query they name each record that they fail with (CONV-2).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from odf_drafts.dates import TimeForm, find_time_form
from odf_drafts.numbers import NumberForm, find_number_forms, find_unread
from odf_drafts.records import Records
from odf_engines.records.time_patterns import RFC_3339
from odf_node.wording import count_of

_GAPS: Final = frozenset(
    {"NA", "N/A", "n/a", "na", "n.a.", "N.A.", "NULL", "null", "None", "NaN", "nan", "k.A.", "k. A.", "#N/A", "#NV"}
    | {"-", "--", "\u2013", ".", "..", "...", ":", "?"}
)
"""Words that stand for no value.  # guess: those that spreadsheets, programs and offices of statistics write"""

_BOOLS: Final = frozenset({"true", "false"})
_PRECISION: Final = 18  # of decimals; what 64 bits hold
_MAX_SCALE: Final = 4  # guess: more decimals are measured or computed, not counted or paid
_ODD_SHARE: Final = 0.3  # guess: where more texts are no numbers, the others are so by chance
_FIGURE: Final = re.compile(r"[+-]?[0-9][0-9.,:/ 'TZz+-]*", re.ASCII)
_RESERVED: Final = ("offset", "op", "system_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeFormats:
    """How the read step says that days and times are written; None: nothing is said."""

    date: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftColumn:
    """A column, as guessed.

    Attributes:
        source: Its name in the file.
        name: Its name in the dataset.
        read_type: The ODF type that the read step gives it.
        type: The one that it ends with.
        nothing: Words that the converter ``Trim`` takes for no value, besides spaces; None where it is not needed.
        cast: Parameters of the converter ``Cast``, but for the column; None where the types are the same.
        doubts: What is uncertain.
        has_nulls: Some records have no value.
        is_mixed: Most of its texts are numbers or times, and some are not.
        time: How its days or times are written.
    """

    source: str
    name: str
    read_type: str
    type: str
    nothing: tuple[str, ...] | None = None
    cast: Mapping[str, str | Sequence[str]] | None = None
    doubts: tuple[str, ...] = ()
    has_nulls: bool = False
    is_mixed: bool = False
    time: TimeForm | None = None

    @property
    def is_time(self) -> bool:
        """Whether it says when something happened."""
        return self.type in {"Date", "Timestamp"}


def guess_columns(records: Records) -> tuple[tuple[DraftColumn, ...], TimeFormats]:
    """Guess all columns of some records, and the formats of their days and times."""
    texts = [[text for text in column if text is not None] for column in records.columns]
    forms = [find_number_forms(_without_gaps(each)) for each in texts]
    hint = _find_decimal_mark(forms)
    shared = _share_group(forms, hint)
    is_comma_free = records.options.get("separator", ",") != ","
    columns = [
        DraftColumn(source=name, name=name, read_type=records.types[name], type=records.types[name])
        if name in records.types
        else _guess(name, present, form, hint=hint, is_whole=records.is_whole, is_comma_free=is_comma_free)
        for name, present, form in zip(records.names, texts, shared, strict=True)
    ]
    formats = TimeFormats()
    if records.has_time_formats:
        formats = TimeFormats(date=_choose_format(columns, "Date"), timestamp=_choose_format(columns, "Timestamp"))
    has_time = any(column.is_time for column in columns)
    return tuple(
        replace(
            _with_formats(column, formats, is_text=records.total is not None and place == records.total[0]),
            name=_free_name(column, has_time=has_time),
            has_nulls=len(present) < records.count or column.has_nulls,
        )
        for place, (column, present) in enumerate(zip(columns, texts, strict=True))
    ), formats


def _free_name(column: DraftColumn, *, has_time: bool) -> str:
    """Give a column another name where its own is one of a system column (ING-3)."""
    is_taken = column.name in _RESERVED or (column.name == "event_time" and not column.is_time and not has_time)
    return f"_{column.name}" if is_taken else column.name


def _without_gaps(texts: Sequence[str]) -> set[str]:
    return {text.strip() for text in texts} - _GAPS - {""}


def _find_decimal_mark(forms: Sequence[Sequence[NumberForm]]) -> str | None:
    """Say which decimal mark the file has, by the columns that can be read in one way only."""
    marks = {each[0].decimal for each in forms if len({form.decimal for form in each if form.scale or form.group}) == 1}
    return marks.pop() if len(marks) == 1 else None


def _share_group(forms: Sequence[Sequence[NumberForm]], decimal: str | None) -> list[Sequence[NumberForm]]:
    """Let all columns with decimals have the sign between thousands that others show: larger numbers may come later."""
    groups = {form.group for each in forms for form in each if form.decimal == decimal and form.group}
    if decimal is None or len(groups) != 1:
        return [*forms]
    (group,) = groups

    def shared(form: NumberForm) -> NumberForm:
        return replace(form, group=group) if form.decimal == decimal and form.scale and not form.group else form

    return [[shared(form) for form in each] for each in forms]


def _guess(
    name: str,
    texts: Sequence[str],
    forms: Sequence[NumberForm],
    *,
    hint: str | None,
    is_whole: bool,
    is_comma_free: bool,
) -> DraftColumn:
    """Guess one column from its texts, in the order of records."""
    text = DraftColumn(source=name, name=name, read_type="String", type="String")
    values = _without_gaps(texts)
    if not values:
        return replace(text, doubts=("no record looked at has a value here",)) if not texts else text
    gaps = sorted({each.strip() for each in texts} & _GAPS)
    if gaps or any(each != each.strip() for each in texts):
        text = replace(text, nothing=tuple(gaps))
    doubts = (f"{_listed(gaps)} is taken for no value",) if gaps else ()
    if {each.lower() for each in values} <= _BOOLS:
        return _made(text, "Bool", doubts, has_nulls=bool(gaps))
    time = find_time_form([each.strip() for each in texts if each.strip() in values])
    if time is not None:
        kind = "Timestamp" if time.has_clock else "Date"
        return replace(_made(text, kind, (*doubts, *_doubt_time(time, texts)), has_nulls=bool(gaps)), time=time)
    if not forms:
        odd = _find_odd(name, values, hint, is_whole=is_whole, is_comma_free=is_comma_free)
        return replace(text, nothing=None, doubts=(odd,) if odd else _doubt_codes(values), is_mixed=odd is not None)
    form, doubt = _choose_form(forms, hint, is_comma_free=is_comma_free)
    kind, type_doubt = _number_type(form, is_whole=is_whole)
    if kind == "String":
        return replace(text, nothing=None, doubts=(type_doubt,) if type_doubt else ())
    reported = tuple(each for each in (doubt, type_doubt) if each)
    return _made(text, kind, (*doubts, *reported), has_nulls=bool(gaps), marks={} if form.is_plain else _marks_of(form))


_NO_MARKS: Final[Mapping[str, str]] = {}


def _made(
    text: DraftColumn, kind: str, doubts: Sequence[str], *, has_nulls: bool, marks: Mapping[str, str] = _NO_MARKS
) -> DraftColumn:
    """Make a column of a type: by the read step where its texts are as that wants them, else by converters."""
    made = replace(text, type=kind, doubts=tuple(doubts), has_nulls=has_nulls)
    if text.nothing is None and not marks:
        return replace(made, read_type=kind)
    return replace(made, cast={"type": _ddl_type(kind), **marks})


def _marks_of(form: NumberForm) -> dict[str, str]:
    """Return the marks of numbers, as ``Cast`` has them."""
    marks = {} if form.decimal in {"", "."} else {"decimal": form.decimal}
    return {**marks, **({"thousands": form.group} if form.group else {})}


def _choose_form(
    forms: Sequence[NumberForm], hint: str | None, *, is_comma_free: bool
) -> tuple[NumberForm, str | None]:
    """Choose one of the ways in which the numbers can be read; the plainest, where the file does not show another."""
    usual = "," if is_comma_free else "."
    form = next((each for each in forms if each.decimal == hint), None) if hint else None
    if form is None:
        marked = [each for each in forms if each.scale or each.group]
        form = next((each for each in marked if each.decimal == usual), forms[0])
        if forms[0].is_plain:
            form = forms[0]
    others = {each.decimal for each in forms if each.scale or each.group} - {form.decimal}
    if hint or not others:
        return form, None
    mark = "a point" if form.decimal == "." else "a comma"
    return form, f"{mark} is taken for the decimal mark; it could stand between thousands"


def _number_type(form: NumberForm, *, is_whole: bool) -> tuple[str, str | None]:
    if form.is_integer and form.decimal:
        if form.whole_digits > _PRECISION:
            return "String", f"numbers of {form.whole_digits} digits are kept as text"
        return "Int64", None
    is_exact = form.scale <= _MAX_SCALE and form.whole_digits + form.scale <= _PRECISION
    if form.is_scientific or not is_exact or not (is_whole or form.is_fixed):
        return "Float64", None
    kind = f"Decimal({form.scale})"
    if form.is_plain and form.is_fixed:
        return kind, None
    decimals = count_of(form.scale, "decimal")
    return kind, f"numbers with more than {decimals} go to quarantine; Float64 takes any number of them"


def _find_odd(name: str, values: set[str], hint: str | None, *, is_whole: bool, is_comma_free: bool) -> str | None:
    """Say which texts keep a column from being one of numbers or times, and what would make numbers of the others.

    None where most are neither.
    """
    figures = {value for value in values if _FIGURE.fullmatch(value)}
    forms = find_number_forms(figures)
    if not forms and (read := figures - find_unread(figures)) and (forms := find_number_forms(read)):
        figures = read
    odd = sorted(values - figures)
    if not odd or len(odd) > _ODD_SHARE * len(values):
        return None
    shown = f"text because of {_listed([value[:30] for value in odd[:3]])}"
    form = _choose_form(forms, hint, is_comma_free=is_comma_free)[0] if forms else None
    kind = _number_type(form, is_whole=is_whole)[0] if form else "String"
    if form is None or kind == "String":
        return f"{shown}; with another type such records go to quarantine"
    cast = {"kind": "Cast", "column": name, "type": _ddl_type(kind), **_marks_of(form)}
    written = json.dumps(cast, ensure_ascii=False)
    return f"{shown}; the converter {written} makes numbers, and such records go to quarantine"


def _doubt_codes(values: set[str]) -> tuple[str, ...]:
    if all(re.fullmatch(r"[0-9]+", value) for value in values):
        return ("digits with leading zeros are kept as text",)
    return ()


def _doubt_time(time: TimeForm, texts: Sequence[str]) -> tuple[str, ...]:
    doubts = []
    if time.further:
        ways = ", ".join((time.pattern, *time.further))
        doubts.append(f"written in several ways; of {ways} the first that gives a day is taken")
    if time.odd:
        count = count_of(sum(each.strip() in time.odd for each in texts), "record")
        doubts.append(f"{count} would go to quarantine: there is no day {_listed(sorted(time.odd)[:3])}")
    if time.other is not None:
        doubts.append(f"read as {time.pattern}; {time.other} would fit as well")
    if time.has_clock and not time.has_zone:
        doubts.append(
            "times name no zone and are read as UTC; if they are of a place, read the column as String and let the "
            "converter Cast make them, with its zone by name: {type: TIMESTAMP, zone: Europe/Berlin}"
        )
    if time.pattern.startswith("%Y%m"):
        doubts.append("eight digits are read as days")
    return tuple(doubts)


def _choose_format(columns: Sequence[DraftColumn], kind: str) -> str | None:
    """Choose the format that most columns of a type have; None where it is the usual one."""
    patterns = [each.time.pattern for each in columns if each.time and not each.time.further and each.read_type == kind]
    chosen = max(patterns, key=patterns.count, default=RFC_3339)
    return None if chosen == RFC_3339 else chosen


def _with_formats(column: DraftColumn, formats: TimeFormats, *, is_text: bool) -> DraftColumn:
    """Let a converter read a column of days or times that are not written as the read step says.

    So it does with a column that has to be read as text, as it says of a record that it is a total.
    """
    if column.time is None:
        if not is_text or column.read_type == "String":
            return column
        return replace(column, read_type="String", cast={"type": _ddl_type(column.type)})
    stated = (formats.date if column.type == "Date" else formats.timestamp) or RFC_3339
    if not is_text and column.cast is None and column.time.pattern == stated and not column.time.further:
        return column
    patterns = [column.time.pattern, *column.time.further]
    cast = {"type": _ddl_type(column.type), **({} if patterns == [RFC_3339] else {"formats": patterns})}
    return replace(column, read_type="String", cast=cast)


def _ddl_type(kind: str) -> str:
    if kind.startswith("Decimal"):
        return f"DECIMAL({_PRECISION},{kind.removeprefix('Decimal(').rstrip(')')})"
    return {"Bool": "BOOLEAN", "Int64": "BIGINT", "Float64": "DOUBLE", "Date": "DATE", "Timestamp": "TIMESTAMP"}[kind]


def _listed(words: Sequence[str]) -> str:
    return ", ".join(repr(word) for word in words)
