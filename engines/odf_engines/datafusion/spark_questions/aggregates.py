"""Aggregates that both engines give the same bits of.

Source: clause QUERY-8 in ``spec/query.md``; Spark SQL reference "Aggregate Functions".
"""

from collections.abc import Callable
from typing import Final

from sqlglot import expressions as exp

from odf_engines.datafusion.spark_questions.kinds import BIGINT, DOUBLE, EXACT_WHOLE, MOST_DIGITS, decimal
from odf_engines.datafusion.spark_questions.values import Term, cast, only, orderly
from odf_engines.errors import UnsuitableQueryError

_EXACT_DOUBLE_BITS: Final = 10
"""A whole number that has this many bits to spare in eight bytes is exact as DOUBLE: 63 - 53 (IEEE 754)."""


_MORE_DIGITS: Final = 10
"""That Spark gives a sum of decimals (``Sum.resultType``)."""


def aggregate_of(node: exp.Expression, write: Callable[[exp.Expression], Term]) -> Term:
    """Write an aggregate whose result does not follow from the order of rows; ``write`` writes what it is over.

    Raises:
        UnsuitableQueryError: It is another one.
    """
    only(node, "this", "big_int")
    word, inner = type(node).__name__.lower(), node.this
    if isinstance(inner, exp.Star) and word == "count":
        return Term("count(*)", BIGINT, "count(1)")
    distinct = ""
    if isinstance(inner, exp.Distinct):
        only(inner, "expressions")
        (inner, *more) = inner.expressions
        if more or word != "count":
            raise UnsuitableQueryError(f"{word} of distinct values")
        distinct = "DISTINCT "
    term = write(inner)
    if term.kind.is_floating and (distinct or word in {"sum", "avg"}):
        raise UnsuitableQueryError(f"{word} of {term.kind.name}, which has the bits of one order of rows")
    name = None if term.name is None else f"{word}({distinct}{term.name})"
    if word == "count":
        return Term(f"count({distinct}{term.sql})", BIGINT, name)
    if word in {"min", "max"}:
        return Term(cast(f"{word}({orderly(term, has_nan=False)})", term.kind), term.kind, name)
    if term.kind.digits and word == "sum" and term.kind.digits + _MORE_DIGITS <= MOST_DIGITS:
        kind = decimal(term.kind.digits + _MORE_DIGITS, term.kind.places)
        return Term(cast(f"sum({term.sql})", kind), kind, name)
    if not term.kind.is_integer:
        raise UnsuitableQueryError(f"{word} of {term.kind.name}")
    exact = cast(term.sql, decimal(EXACT_WHOLE, 0))
    if word == "sum":
        return Term(cast(f"sum({exact})", BIGINT), BIGINT, name)
    # Spark adds up doubles, which is exact up to 2^53: beyond that this fails.
    size = cast(f"sum(abs({exact})) * {2**_EXACT_DOUBLE_BITS}", BIGINT)
    mean = f"({cast(f'sum({exact})', DOUBLE)} / {cast(f'count({term.sql})', DOUBLE)})"
    # Of a bare comparison the planner would take the cast away, which is what fails.
    return Term(f"(CASE WHEN abs({size}) >= 0 THEN {mean} END)", DOUBLE, name)
