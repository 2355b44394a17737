"""One question of Spark's as one of DataFusion's: names, types and order of rows as Spark gives them.

Source: clauses QUERY-5, QUERY-7, QUERY-8 and ENGINE-17 in ``spec``.
"""

import logging
from collections.abc import Sequence

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from odf_engines.contract import QueryTable
from odf_engines.datafusion.context import quoted
from odf_engines.datafusion.spark_questions.kinds import Kind
from odf_engines.datafusion.spark_questions.selects import PLACE, STATE_SUFFIX, Reader, Scope, item_at
from odf_engines.datafusion.spark_questions.terms import term_of
from odf_engines.datafusion.spark_questions.values import Term, cast, only, orderly
from odf_engines.errors import UnsuitableQueryError
from odf_engines.host.queries import quote_dotted_names, tell_apart

# It would write texts of questions as they are among the lines of the daemon.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

# What the parser reads otherwise than Spark does: escapes, comments inside of comments, pipes.
_READ_OTHERWISE = ("\\", "/*", "|>", "{", "$")


def translate_question(sql: str, tables: Sequence[QueryTable]) -> str:
    """Write a question that was written for Spark as DataFusion answers it alike.

    Raises:
        UnsuitableQueryError: Spark has to answer it; the message says what it has.
    """
    for sign in _READ_OTHERWISE:
        if sign in sql:
            raise UnsuitableQueryError(f"the sign {sign}")
    try:
        return _translate(sql, tables)
    except RecursionError as error:
        raise UnsuitableQueryError("more parts inside each other than are looked at") from error


def _translate(sql: str, tables: Sequence[QueryTable]) -> str:
    names = [form for each in tables for form in (each.name, f"{each.name}{STATE_SUFFIX}")]
    try:
        found = sqlglot.parse(quote_dotted_names(sql, names), read="spark")
    except (SqlglotError, RecursionError, ValueError) as error:
        raise UnsuitableQueryError("a form that the parser does not know") from error
    if len(found) != 1 or found[0] is None:
        raise UnsuitableQueryError("several statements")
    reader = Reader({each.name: each for each in tables})
    translated = _whole_question(found[0], reader)
    if unused := reader.named.keys() - reader.used:
        raise UnsuitableQueryError(f"WITH {min(unused)}, which is not used")
    return translated


def _whole_question(node: exp.Expression, reader: Reader) -> str:
    if isinstance(node, exp.Union):
        part = reader.read_union(node)
        columns = [
            (name, Term(f"q.c{place}", _sure(kind)))
            for place, (name, kind) in enumerate(zip(part.names, part.kinds, strict=True))
        ]
        keys = [_key(each, _output_of(each.this, columns)) for each in _ordered(node)]
    elif isinstance(node, exp.Select):
        scope, items = reader.read_select(node)
        hidden: list[Term] = []
        found = [(each, _place_of(each.this, scope, items, hidden)) for each in _ordered(node)]
        if hidden and node.args.get("distinct"):
            raise UnsuitableQueryError("ORDER BY of what DISTINCT has taken away")
        if hidden and node.args.get("having"):
            raise UnsuitableQueryError("HAVING and ORDER BY of what is no column of the result")
        part = reader.write_select(node, scope, items, tuple(hidden))
        kinds = {f"q.c{place}": term.kind for place, (_, term) in enumerate(items)}
        kinds |= {f"q.k{place}": term.kind for place, term in enumerate(hidden)}
        keys = [_key(each, Term(place, kinds[place])) for each, place in found]
    else:
        raise UnsuitableQueryError(node.key.upper())
    outputs = [Term(f"q.c{place}", _sure(kind)) for place, kind in enumerate(part.kinds)]
    limit = _limit_of(node)
    if not keys and part.passes_rows:
        # Files may be read in any order.
        order = f" ORDER BY q.{PLACE}" if part.has_place else ""
    elif limit and not keys:
        raise UnsuitableQueryError("LIMIT without ORDER BY over more than the rows of a table")
    else:
        order = f" ORDER BY {', '.join([*keys, *(f'{orderly(each)} ASC NULLS FIRST' for each in outputs)])}"
    titles = [
        f"{cast(each.sql, each.kind)} AS {quoted(name)}"
        for each, name in zip(outputs, tell_apart(part.names), strict=True)
    ]
    return f"SELECT {', '.join(titles)} FROM ({part.sql}) AS q{order}{limit}"  # noqa: S608 - written from parts


def _sure(kind: Kind | None) -> Kind:
    if kind is None:
        raise UnsuitableQueryError("a type that the engines do not share")
    return kind


def _ordered(node: exp.Expression) -> list[exp.Ordered]:
    order = node.args.get("order")
    if order is None:
        return []
    only(order, "expressions")
    for each in order.expressions:
        only(each, "this", "desc", "nulls_first")
    return list(order.expressions)


def _key(node: exp.Ordered, term: Term) -> str:
    way = "DESC" if node.args.get("desc") else "ASC"
    return f"{orderly(term)} {way} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


def _output_of(node: exp.Expression, columns: list[tuple[str, Term]]) -> Term:
    """Find what ORDER BY names among the columns of the result."""
    if isinstance(node, exp.Literal):
        return item_at(node, columns)
    if isinstance(node, exp.Column) and not node.args.get("table"):
        found = {term.sql: term for name, term in columns if name == node.name}
        if len(found) == 1:
            return next(iter(found.values()))
    raise UnsuitableQueryError("ORDER BY of what is no column of the result")


def _place_of(node: exp.Expression, scope: Scope, items: list[tuple[str, Term]], hidden: list[Term]) -> str:
    """Find what ORDER BY names: a column of the result, else of what it was made of, which is added to ``hidden``."""
    terms = [term for _, term in items]
    if isinstance(node, exp.Literal):
        return f"q.c{terms.index(item_at(node, items))}"
    is_bare = isinstance(node, exp.Column) and not node.args.get("table")
    named = {name: [term for each, term in items if each == name] for name, _ in items}
    if is_bare and (found := named.get(node.name)):
        if len({each.sql for each in found}) > 1:
            raise UnsuitableQueryError(f"several columns called {node.name}")
        return f"q.c{terms.index(found[0])}"
    term = term_of(node, scope.find)
    for column in node.find_all(exp.Column):
        # Names of the result come first.
        if any(each.sql != term_of(column, scope.find).sql for each in named.get(column.name, ())):
            raise UnsuitableQueryError("ORDER BY of an expression over names of the result")
    for place, each in enumerate(terms):
        if each.sql == term.sql:
            return f"q.c{place}"
    hidden.append(term)
    return f"q.k{len(hidden) - 1}"


def _limit_of(node: exp.Expression) -> str:
    limit = node.args.get("limit")
    if limit is None:
        return ""
    only(limit, "expression")
    count = limit.expression
    if not isinstance(count, exp.Literal) or count.args["is_string"] or not count.this.isdecimal():
        raise UnsuitableQueryError("LIMIT of an expression")
    return f" LIMIT {int(count.this)}"
