"""What is measured of the rows after a version, in DataFusion's SQL; every name and text of a contract is quoted.

``judged`` is the changelog up to the version and ``judged__state`` its current rows; ``before`` and ``before__state``
are those of the version before.

Source: CONTRACT-4 and CONTRACT-5, where each measure is defined.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa

from odf_contracts.rules import ContractRule, MeasureKind, RuleMeasure
from odf_protocol.comparison_form import form_sql
from odf_protocol.timestamp import Timestamp

JUDGED: Final = "judged"
BEFORE: Final = "before"
NOW: Final = f"{JUDGED}__state"
EARLIER: Final = f"{BEFORE}__state"

_DAY_MS: Final = 86_400_000
_MAX_DIGITS: Final = 80  # no decimal of Arrow has more


@dataclass(frozen=True, slots=True)
class MeasuredVersion:
    """What the text of a measure depends on.

    Attributes:
        event_time: The column of the event time.
        published: The system time of the version's block.
        gap_s: Seconds since the version before was published; None: it is the first.
        object_names: What a contract's own queries call the table.
        types: Of its columns.
    """

    event_time: str
    published: Timestamp
    gap_s: float | None
    object_names: tuple[str, ...]
    types: Mapping[str, pa.DataType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasureText:
    """A measure in SQL.

    Attributes:
        value: A query that gives one number, in one row.
        sample: A query for the rows that show it; None: no row does.
    """

    value: str
    sample: str | None = None


def quoted_name(name: str) -> str:
    """Quote a name for DataFusion's SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Quote a text for DataFusion's SQL."""
    return "'" + text.replace("'", "''") + "'"


def write_measure(rule: ContractRule, version: MeasuredVersion) -> MeasureText | None:
    """Write a measure; None: no query is asked for it."""
    write = _WRITERS.get(rule.measure.kind)
    if write is None:
        return None
    found = write(rule.measure, version)
    if rule.is_percent and rule.measure.kind not in {MeasureKind.OF_PREVIOUS, MeasureKind.REWRITTEN, MeasureKind.FALLS}:
        share = f"SELECT 100.0 * ({found.value}) / greatest((SELECT count(*) FROM {NOW}), 1)"  # noqa: S608 - quoted
        return MeasureText(share, found.sample)
    return found


def _row_count(_measure: RuleMeasure, _version: MeasuredVersion) -> MeasureText:
    return MeasureText(f"SELECT count(*) FROM {NOW}")  # noqa: S608 - as above


def _rows_where(condition: str) -> MeasureText:
    found = f"FROM {NOW} WHERE {condition}"
    return MeasureText(f"SELECT count(*) {found}", f"SELECT * {found}")


def _nulls(measure: RuleMeasure, _version: MeasuredVersion) -> MeasureText:
    return _rows_where(f"{quoted_name(measure.columns[0])} IS NULL")


def _missing(measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    column = quoted_name(measure.columns[0])
    conditions = [f"{column} IS NULL"] if measure.with_null else []
    if measure.values:
        conditions.append(_is_one_of(column, version.types.get(measure.columns[0]), measure.values))
    return _rows_where(" OR ".join(conditions) or "false")


def _is_one_of(column: str, kind: pa.DataType | None, values: Sequence[str]) -> str:
    """Write that a column has one of the values: of columns of numbers as numbers, of others as texts."""
    if kind is not None and pa.types.is_floating(kind):
        numbers = [float(each) for each in map(_number_of, values) if each is not None]
        # In the column's own width, as its reader took them.
        wanted = [f"arrow_cast({each!r}, 'Float{kind.bit_width}')" for each in numbers if math.isfinite(each)]
        found = [f"{form_sql(column, kind)} IN ({', '.join(wanted)})"] if wanted else []
        if any(each.lower().lstrip(".") == "nan" for each in values):
            found.append(f"isnan({column})")
        return f"({' OR '.join(found)})" if found else "false"
    if kind is not None and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        scale = kind.scale if pa.types.is_decimal(kind) else 0
        values = [text for each in values if (text := _decimal_text(each, scale)) is not None]
    return f"CAST({column} AS VARCHAR) IN ({', '.join(map(quoted_text, values))})" if values else "false"


def _number_of(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _decimal_text(text: str, scale: int) -> str | None:
    """Write a number as DataFusion writes one with that many decimal places; None: no such number is equal to it."""
    number = _number_of(text)
    if number is None or number.adjusted() > _MAX_DIGITS:
        return None
    found = f"{number.copy_abs() if number == 0 else number:.{max(scale, 0)}f}"
    return found if Decimal(found) == number else None


def _invalid(measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    column = quoted_name(measure.columns[0])
    kind = version.types.get(measure.columns[0])
    text = f"CAST({column} AS VARCHAR)"
    wrong = []
    if measure.values:
        wrong.append(f"NOT {_is_one_of(column, kind, measure.values)}")
    if measure.pattern is not None:
        wrong.append(f"NOT regexp_like({text}, {quoted_text(measure.pattern)})")
    measured = f"character_length({text})" if measure.is_length else column
    has_bound = measure.low is not None or measure.high is not None
    if has_bound and not measure.is_length and kind is not None and pa.types.is_floating(kind):
        measured = form_sql(column, kind)  # for DataFusion -0.0 is less than 0.0
        wrong.append(f"isnan({column})")  # which is within no bound
    if measure.low is not None:
        wrong.append(f"{measured} {'<=' if measure.excludes_low else '<'} {measure.low!r}")
    if measure.high is not None:
        wrong.append(f"{measured} {'>=' if measure.excludes_high else '>'} {measure.high!r}")
    return _rows_where(f"{column} IS NOT NULL AND ({' OR '.join(wrong)})")


def _duplicates(measure: RuleMeasure, _version: MeasuredVersion) -> MeasureText:
    """Count the rows beyond the first of each value; a null in one column is none, as in SQL's UNIQUE."""
    columns = ", ".join(map(quoted_name, measure.columns))
    known = " AND ".join(f"{quoted_name(each)} IS NOT NULL" for each in measure.columns)
    groups = f"SELECT {columns}, count(*) AS rows_of_key FROM {NOW} WHERE {known} GROUP BY {columns}"  # noqa: S608
    return MeasureText(
        f"SELECT coalesce(sum(rows_of_key - 1), 0) FROM ({groups})",  # noqa: S608 - as above
        f"{groups} HAVING count(*) > 1 ORDER BY count(*) DESC",
    )


def _ahead(measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    latest_ms = version.published.unix_ms + int(measure.number * 1000)
    event_ms = _milliseconds(version.event_time)
    found = f"FROM {NOW} WHERE {event_ms} > {latest_ms}"
    order = f"ORDER BY {quoted_name(version.event_time)} DESC"
    return MeasureText(f"SELECT count(*) {found}", f"SELECT * {found} {order}")


def _days_missing(_measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    day = f"CAST(floor({_milliseconds(version.event_time)} / {float(_DAY_MS)}) AS BIGINT)"
    known = f"{quoted_name(version.event_time)} IS NOT NULL"
    days = f"SELECT DISTINCT {day} AS day FROM {NOW} WHERE {known}"  # noqa: S608 - as above
    gaps = f"SELECT lag(day) OVER (ORDER BY day) AS last, day AS next FROM ({days})"  # noqa: S608
    date = "CAST(from_unixtime(({}) * 86400) AS DATE)"
    between = f"{date.format('last + 1')} AS first_missing_day, {date.format('next - 1')} AS last_missing_day"
    return MeasureText(
        f"SELECT coalesce(max(day) - min(day) + 1 - count(*), 0) FROM ({days})",  # noqa: S608 - as above
        f"SELECT {between}, next - last - 1 AS days FROM ({gaps}) WHERE next > last + 1 ORDER BY next",  # noqa: S608
    )


def _falls(measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    """Count rows below the one before in time, of one key; in percent of the rows that have one before."""
    column, *by = map(quoted_name, measure.columns)
    time = quoted_name(version.event_time)
    parts = f"PARTITION BY {', '.join(by)} " if by else ""
    over = f"OVER ({parts}ORDER BY {time}, {column})"
    lagged = f"SELECT *, lag({column}) {over} AS value_before FROM {NOW} WHERE {column} IS NOT NULL"  # noqa: S608
    found = f"FROM ({lagged}) WHERE {column} < value_before"
    return MeasureText(
        f"SELECT 100.0 * count(CASE WHEN {column} < value_before THEN 1 END) / greatest(count(value_before), 1) "  # noqa: S608
        f"FROM ({lagged})",
        f"SELECT * {found} ORDER BY value_before - {column} DESC",
    )


def _of_previous(_measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    if version.gap_s is None:
        return MeasureText("SELECT 100.0")
    return MeasureText(
        f"SELECT 100.0 * (SELECT count(*) FROM {NOW}) / greatest((SELECT count(*) FROM {EARLIER}), 1)"  # noqa: S608
    )


def _rewritten(_measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    if version.gap_s is None:
        return MeasureText("SELECT 0.0")
    gone = f"SELECT * FROM {EARLIER} EXCEPT SELECT * FROM {NOW}"  # noqa: S608 - as above
    share = f"SELECT 100.0 * (SELECT count(*) FROM ({gone})) / greatest((SELECT count(*) FROM {EARLIER}), 1)"  # noqa: S608
    return MeasureText(share, f"SELECT * FROM ({gone}) ORDER BY {quoted_name(version.event_time)} DESC")  # noqa: S608


def _latency(measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    column = measure.columns[0] if measure.columns else version.event_time
    newest = f"SELECT max({_milliseconds(column)}) FROM {NOW}"  # noqa: S608 - as above
    return MeasureText(f"SELECT ({version.published.unix_ms} - ({newest})) / 1000.0")


def _gap(_measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    return MeasureText(f"SELECT {0.0 if version.gap_s is None else version.gap_s!r}")


def _query(measure: RuleMeasure, version: MeasuredVersion) -> MeasureText:
    """Put a contract's own query over the current rows, under the names that the contract gives the table."""
    text = measure.values[0].strip().rstrip(";")
    text = text.replace("${object}", NOW).replace("{object}", NOW)
    if measure.columns:
        column = quoted_name(measure.columns[0])
        text = text.replace("${property}", column).replace("{property}", column)
    named = [each for each in version.object_names if re.search(rf"(?<![\w]){re.escape(each)}(?![\w])", text)]
    tables = ", ".join(f"{quoted_name(each)} AS (SELECT * FROM {NOW})" for each in named)  # noqa: S608 - quoted
    # As a subquery, which may begin with a WITH of its own and end with a comment.
    return MeasureText(f"WITH {tables} SELECT * FROM ({text}\n)" if tables else text)  # noqa: S608 - as above


def _milliseconds(column: str) -> str:
    return f"CAST(arrow_cast({quoted_name(column)}, 'Timestamp(Millisecond, Some(\"UTC\"))') AS BIGINT)"


_WRITERS: Final[dict[MeasureKind, Callable[[RuleMeasure, MeasuredVersion], MeasureText]]] = {
    MeasureKind.ROW_COUNT: _row_count,
    MeasureKind.NULLS: _nulls,
    MeasureKind.MISSING: _missing,
    MeasureKind.INVALID: _invalid,
    MeasureKind.DUPLICATES: _duplicates,
    MeasureKind.QUERY: _query,
    MeasureKind.AHEAD: _ahead,
    MeasureKind.DAYS_MISSING: _days_missing,
    MeasureKind.FALLS: _falls,
    MeasureKind.OF_PREVIOUS: _of_previous,
    MeasureKind.REWRITTEN: _rewritten,
    MeasureKind.LATENCY: _latency,
    MeasureKind.GAP: _gap,
}
