"""Expressions: each part of a question's text as DataFusion's SQL, with the type and the name that it has in Spark.

Source: clause QUERY-8 in ``spec/query.md``; Spark SQL reference "ANSI Compliance", "NULL Semantics", "NaN Semantics".
"""

from collections.abc import Callable
from typing import Final

from sqlglot import expressions as exp

from odf_engines.datafusion.spark_questions.aggregates import aggregate_of
from odf_engines.datafusion.spark_questions.kinds import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    EXACT_WHOLE,
    INT,
    STRING,
    TIMESTAMP,
    Kind,
    decimal,
    wider_integer,
)
from odf_engines.datafusion.spark_questions.values import Term, cast, comparable, literal_of, moment_of, only
from odf_engines.errors import UnsuitableQueryError

Find = Callable[[str | None, str], Term]
"""Finds a column by its table's alias (None: of any) and its name."""


def term_of(node: exp.Expression, find: Find) -> Term:
    """Write an expression for DataFusion.

    Args:
        node: As the parser gives it.
        find: Finds the columns that it may name.

    Raises:
        UnsuitableQueryError: It has a part that is not known to mean the same to both engines.
    """
    write = _WRITERS.get(type(node))
    if write is None:
        raise UnsuitableQueryError(f"{node.key.upper()} in an expression")
    return write(node, lambda inner: term_of(inner, find)) if write is not _column else _column(node, find)


Write = Callable[[exp.Expression], Term]


def _column(node: exp.Expression, find: Find) -> Term:
    only(node, "this", "table")
    if not isinstance(node.this, exp.Identifier):
        raise UnsuitableQueryError("* in an expression")
    return find(node.args["table"].name if node.args.get("table") else None, node.this.name)


def _boolean(node: exp.Expression, _write: Write) -> Term:
    word = "true" if node.this else "false"
    return Term(word, BOOLEAN, word)


def _paren(node: exp.Expression, write: Write) -> Term:
    only(node, "this")
    return write(node.this)


def _negative(node: exp.Expression, write: Write) -> Term:
    only(node, "this")
    if not isinstance(node.this, exp.Literal):
        raise UnsuitableQueryError("a sign before an expression")
    number = write(node.this)
    if number.kind.is_integer:
        return Term(cast(f"-{node.this.this}", number.kind), number.kind, f"-{number.name}")
    if number.kind.digits:
        return Term(cast(f"'-{node.this.this}'", number.kind), number.kind)
    raise UnsuitableQueryError("a sign before a text")


def _logical(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expression")
    word = type(node).__name__.upper()
    return Term(f"({_truth(write(node.this))} {word} {_truth(write(node.expression))})", BOOLEAN)


def _not(node: exp.Expression, write: Write) -> Term:
    only(node, "this")
    return Term(f"(NOT {_truth(write(node.this))})", BOOLEAN)


def _truth(term: Term) -> str:
    if term.kind != BOOLEAN:
        raise UnsuitableQueryError(f"a condition of type {term.kind.name}")
    return term.sql


_SIGNS: Final = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


def _comparison(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expression")
    return _compared(write(node.this), _SIGNS[type(node)], write(node.expression))


def _compared(first: Term, sign: str, second: Term) -> Term:
    left, right = _alike(first, second)
    return Term(f"({comparable(left)} {sign} {comparable(right)})", BOOLEAN)


_DISTINCT: Final = {exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM"}


def _distinct(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expression")
    first, second, sign = write(node.this), write(node.expression), _DISTINCT[type(node)]
    if first.kind == second.kind == BOOLEAN and all(isinstance(each, exp.Column) for each in node.iter_expressions()):
        return Term(f"({first.sql} {sign} {second.sql})", BOOLEAN)
    return _compared(first, sign, second)


def _alike(first: Term, second: Term) -> tuple[Term, Term]:
    """Give two terms the type in which Spark compares them."""
    kinds = {first.kind, second.kind}
    if BOOLEAN in kinds:
        # What binds closer is not the same for the parser and for Spark.
        raise UnsuitableQueryError("a comparison of conditions")
    if len(kinds) == 1:
        return first, second
    if first.kind.is_integer and second.kind.is_integer:
        kind = wider_integer(first.kind, second.kind)
    elif kinds <= {TIMESTAMP, DATE}:
        kind = TIMESTAMP
    elif STRING in kinds and kinds & {TIMESTAMP, DATE}:
        (kind,) = kinds - {STRING}
        return _as_time(first, kind), _as_time(second, kind)
    elif DOUBLE in kinds and all(each.is_integer or each.digits or each == DOUBLE for each in kinds):
        kind = DOUBLE
    elif all(each.is_integer or each.digits for each in kinds):
        wholes = max(each.digits - each.places if each.digits else EXACT_WHOLE for each in kinds)
        places = max(each.places for each in kinds)
        kind = decimal(wholes + places, places)
    else:
        raise UnsuitableQueryError(f"{first.kind.name} compared with {second.kind.name}")
    return Term(cast(first.sql, kind), kind), Term(cast(second.sql, kind), kind)


def _as_time(term: Term, kind: Kind) -> Term:
    if term.kind != STRING:
        return term
    if term.text is None:
        raise UnsuitableQueryError(f"a text that is computed compared with {kind.name}")
    return moment_of(term.text, kind)


def _is_null(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expression")
    if not isinstance(node.expression, exp.Null):
        raise UnsuitableQueryError("IS with anything but NULL")
    term = write(node.this)
    if term.kind == BOOLEAN and not isinstance(node.this, exp.Column | exp.Paren):
        raise UnsuitableQueryError("IS NULL of a condition")
    return Term(f"({term.sql} IS NULL)", BOOLEAN)


def _between(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "low", "high")
    term = write(node.this)
    low, high = (_compared(term, sign, write(node.args[bound])) for sign, bound in ((">=", "low"), ("<=", "high")))
    return Term(f"({low.sql} AND {high.sql})", BOOLEAN)


def _in(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expressions")
    term = write(node.this)
    values = [write(each) for each in node.expressions]
    if not values or any(not isinstance(each, exp.Literal) for each in node.expressions):
        raise UnsuitableQueryError("IN with anything but values")
    if not all(_fits(each.kind, term.kind) for each in values):
        raise UnsuitableQueryError("IN with values of other types")
    return Term(f"({' OR '.join(_compared(term, '=', each).sql for each in values)})", BOOLEAN)


def _fits(value: Kind, kind: Kind) -> bool:
    """Say whether IN compares a value with a column as ``=`` does: Spark looks for a type of all of them."""
    return value == kind or (value.is_integer and kind.is_integer) or (value == STRING and kind in (DATE, TIMESTAMP))


def _like(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expression", "negate")
    term, pattern = write(node.this), write(node.expression)
    if term.kind != STRING or pattern.text is None or "_" in pattern.text:
        raise UnsuitableQueryError("LIKE with more than % in a text")
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return Term(f"({term.sql} {word} {pattern.sql})", BOOLEAN)


def _case(node: exp.Expression, write: Write) -> Term:
    only(node, "ifs", "default")
    results = [write(each.args["true"]) for each in node.args["ifs"]]
    default = write(node.args["default"]) if node.args.get("default") else None
    kind = _one_kind([*results, *([default] if default else [])])
    whens = [
        f"WHEN {_truth(write(each.this))} THEN {cast(result.sql, kind)}"
        for each, result in zip(node.args["ifs"], results, strict=True)
    ]
    end = f"ELSE {cast(default.sql, kind)} " if default else ""
    return Term(f"(CASE {' '.join(whens)} {end}END)", kind)


def _coalesce(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expressions")
    terms = [write(each) for each in (node.this, *node.expressions)]
    kind = _one_kind(terms)
    names = [each.name for each in terms]
    name = None if None in names else f"coalesce({', '.join(map(str, names))})"
    return Term(f"coalesce({', '.join(cast(each.sql, kind) for each in terms)})", kind, name)


def _one_kind(terms: list[Term]) -> Kind:
    kinds = {each.kind for each in terms}
    if len(kinds) == 1:
        return kinds.pop()
    if all(each.is_integer for each in kinds):
        first, *others = kinds
        for each in others:
            first = wider_integer(first, each)
        return first
    raise UnsuitableQueryError("values of several types in one column")


_ARITHMETIC: Final = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


def _arithmetic(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expression")
    first, second, sign = write(node.this), write(node.expression), _ARITHMETIC[type(node)]
    name = _name_of_pair(first, sign, second)
    if first.kind.is_integer and second.kind.is_integer:
        # DataFusion's whole numbers go round when they are too large; its decimals fail.
        kind, exact = wider_integer(first.kind, second.kind), decimal(EXACT_WHOLE, 0)
        return Term(cast(f"({cast(first.sql, exact)} {sign} {cast(second.sql, exact)})", kind), kind, name)
    if {first.kind, second.kind} <= {DOUBLE, INT, BIGINT}:
        return Term(f"({cast(first.sql, DOUBLE)} {sign} {cast(second.sql, DOUBLE)})", DOUBLE, name)
    raise UnsuitableQueryError(f"{first.kind.name} {sign} {second.kind.name}")


def _division(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expression", "typed", "safe")
    first, second = write(node.this), write(node.expression)
    if not second.kind.is_integer or not (first.kind.is_integer or first.kind == DOUBLE):
        raise UnsuitableQueryError(f"{first.kind.name} / {second.kind.name}")
    # A division of whole numbers fails by zero, one of others does not.
    quotient = f"({cast(first.sql, DOUBLE)} / {cast(second.sql, DOUBLE)})"
    guarded = f"(CASE WHEN {cast('1', second.kind)} / {second.sql} IS NULL THEN NULL ELSE {quotient} END)"
    return Term(guarded, DOUBLE, _name_of_pair(first, "/", second))


def _name_of_pair(first: Term, sign: str, second: Term) -> str | None:
    return None if first.name is None or second.name is None else f"({first.name} {sign} {second.name})"


def _joined_texts(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "expression", "safe")
    first, second = write(node.this), write(node.expression)
    if {first.kind, second.kind} != {STRING}:
        raise UnsuitableQueryError("|| of anything but texts")
    return Term(f"({first.sql} || {second.sql})", STRING)


def _cast_term(node: exp.Expression, write: Write) -> Term:
    only(node, "this", "to")
    target, term = node.args["to"].this, write(node.this)
    if term.text is not None and target in (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMPTZ):
        kind = DATE if target == exp.DataType.Type.DATE else TIMESTAMP
        return _as_time(term, kind)
    kinds = {exp.DataType.Type.BIGINT: BIGINT, exp.DataType.Type.INT: INT, exp.DataType.Type.DOUBLE: DOUBLE}
    if target == exp.DataType.Type.TEXT and term.kind.is_integer:
        return Term(cast(term.sql, STRING), STRING)
    if target in kinds and term.kind.is_integer:
        return Term(cast(term.sql, kinds[target]), kinds[target])
    if target == exp.DataType.Type.DATE and term.kind == TIMESTAMP:
        days = f"arrow_cast(date_trunc('day', {term.sql}), '{TIMESTAMP.arrow}')"
        return Term(cast(days, DATE), DATE)
    raise UnsuitableQueryError(f"CAST of {term.kind.name} to {node.args['to'].sql()}")


_WRITERS: Final[dict[type[exp.Expression], Callable[..., Term]]] = {
    exp.Column: _column,
    exp.Literal: lambda node, _write: literal_of(node),
    exp.Boolean: _boolean,
    exp.Paren: _paren,
    exp.Neg: _negative,
    exp.And: _logical,
    exp.Or: _logical,
    exp.Not: _not,
    **dict.fromkeys(_SIGNS, _comparison),
    **dict.fromkeys(_DISTINCT, _distinct),
    exp.Is: _is_null,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    exp.Div: _division,
    exp.DPipe: _joined_texts,
    exp.Cast: _cast_term,
    exp.TryCast: _cast_term,
    **dict.fromkeys((exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg), aggregate_of),
}
