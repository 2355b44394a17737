"""Values: what an expression is here, how its type is kept, and literals.

Source: clause QUERY-8 in ``spec/query.md``; Spark SQL reference "Literals", "NaN Semantics".
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from sqlglot import expressions as exp

from odf_engines.datafusion.spark_questions.kinds import BIGINT, DATE, INT, STRING, TIMESTAMP, Kind, decimal
from odf_engines.errors import UnsuitableQueryError

_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_POINTED: Final = re.compile(r"[0-9]{1,15}\.[0-9]{1,15}")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d)?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Term:
    """An expression.

    Attributes:
        sql: For DataFusion; one operand, wherever it stands.
        kind: Its type in Spark.
        name: What Spark calls a column of it that has no alias; None: not known here.
        text: Of a quoted text in the question, its letters.
    """

    sql: str
    kind: Kind
    name: str | None = None
    text: str | None = None


def only(node: exp.Expression, *parts: str) -> None:
    """Check that a part of a question has nothing but what is looked at.

    Raises:
        UnsuitableQueryError: It has more.
    """
    for name, value in node.args.items():
        if value and name not in parts:
            raise UnsuitableQueryError(f"{node.key.upper()} with {name.strip('_').replace('_', ' ')}")


def cast(sql: str, kind: Kind) -> str:
    """Make DataFusion keep to a type; what does not fit fails."""
    return f"arrow_cast({sql}, '{kind.arrow}')"


def comparable(term: Term) -> str:
    """Write a term so that DataFusion compares and orders it as Spark does: one NaN, after all numbers; one zero."""
    if not term.kind.is_floating:
        return term.sql
    nan, minus, zero = (cast(text, term.kind) for text in ("'NaN'", "'-0.0'", "'0.0'"))
    return f"(CASE WHEN isnan({term.sql}) THEN {nan} WHEN {term.sql} = {minus} THEN {zero} ELSE {term.sql} END)"


def orderly(term: Term, *, has_nan: bool = True) -> str:
    """As ``comparable`` for what is ordered: it fails on a negative zero, which ties with the other one in Spark.

    ``has_nan``: False where it has to fail on NaN as well, of which DataFusion keeps any or none as the greatest.
    """
    if not term.kind.is_floating:
        return term.sql
    text = cast(term.sql, STRING)
    # A text that is no number, and that the planner cannot know.
    fails = cast(f"concat('neither order nor value: ', {text})", term.kind)
    nan = cast("'NaN'", term.kind) if has_nan else fails
    return f"(CASE WHEN isnan({term.sql}) THEN {nan} WHEN {text} = '-0.0' THEN {fails} ELSE {term.sql} END)"


def literal_of(node: exp.Expression) -> Term:
    """Give the value of a literal.

    Raises:
        UnsuitableQueryError: It has a form that is not known here.
    """
    text = node.this
    if node.args["is_string"]:
        if not text.isprintable():
            raise UnsuitableQueryError("a text with characters that are not shown")
        return Term("'" + text.replace("'", "''") + "'", STRING, text, text)
    if _WHOLE.fullmatch(text):
        kind = INT if int(text) < 2**31 else BIGINT
        return Term(cast(text, kind), kind, str(int(text)))
    if _POINTED.fullmatch(text):
        before, _, behind = text.partition(".")
        digits = len(before.lstrip("0")) + len(behind)
        return Term(cast(f"'{text}'", kind := decimal(max(digits, len(behind), 1), len(behind))), kind)
    raise UnsuitableQueryError(f"the number {text}")


def moment_of(text: str, kind: Kind) -> Term:
    """Give a day or a time in UTC that a text names.

    Raises:
        UnsuitableQueryError: It names none.
    """
    form = _DAY if kind == DATE else _MOMENT
    if not form.fullmatch(text):
        raise UnsuitableQueryError(f"a text compared with {kind.name}")
    try:
        if kind == DATE:
            days = (date.fromisoformat(text) - _EPOCH.date()).days
            return Term(cast(cast(str(days), INT), DATE), DATE)
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError as error:
        raise UnsuitableQueryError(f"the time {text}") from error
    return Term(cast(cast(str((moment - _EPOCH) // timedelta(microseconds=1)), BIGINT), TIMESTAMP), TIMESTAMP)
