"""SQL of other engines, read and written by a library; what it does not know is here (PLAN-17).

That is windows of streams, as calls in GROUP BY or where a table stands: ``FROM TABLE(TUMBLE(TABLE i, DESCRIPTOR(t),
INTERVAL ...))`` has each row with ``window_start`` and ``window_end``, by which the query groups. Spark says both with
a window in GROUP BY.
"""

import logging
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.expressions import Expression
from sqlglot.tokens import TokenType

from odf_protocol.errors import MalformedError
from odf_spark.dialects import DIALECTS, ENGINE

if TYPE_CHECKING:
    from collections.abc import Iterator


# It would write texts of questions as they are among the lines of the daemon.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

_WINDOWS: Final = {"TUMBLE": "window", "HOP": "window", "SESSION": "session_window"}
_NO_COUNTERPART: Final = ("_ROWTIME", "_PROCTIME")


class DataFusion(Postgres):  # type: ignore[misc]
    """PostgreSQL's, but that names stand in back-ticks too."""

    class Tokenizer(Postgres.Tokenizer):  # type: ignore[misc]
        """Reads `` `name` `` beside ``"name"``."""

        IDENTIFIERS = ('"', "`")


class Flink(Spark):  # type: ignore[misc]
    """Spark's, but that SESSION is a function."""

    class Parser(Spark.Parser):  # type: ignore[misc]
        """Reads ``SESSION(event_time, INTERVAL ...)``."""

        FUNC_TOKENS = Spark.Parser.FUNC_TOKENS | {TokenType.SESSION}


def dialect_of(engine: str) -> Dialect:
    """Return how an engine's SQL is read: by a dialect of the library, or one that it lacks; if unknown, as Spark's."""
    if engine == "flink":
        return Flink()
    if engine == "datafusion":
        return DataFusion()
    return Dialect.get_or_raise(engine if engine in DIALECTS else ENGINE)


def translate_query(query: str, engine: str, *, where: str) -> tuple[str, list[str]]:
    """Translate one query; return it, and what in it may mean something else now.

    Raises:
        MalformedError: It cannot be read, or has a part that Spark has nothing for; ``where`` it stands is said.
    """
    tree = _read(query, engine, where)
    _check_laterals(tree, where)
    put_window_tables(tree, where)
    _put_windows(tree, where)
    doubts = [
        f"{node.sql(dialect=ENGINE)}: of whole numbers it may have been a whole number; here it has digits behind it"
        for node in tree.find_all(exp.Div)
    ]
    doubts += [
        f"{node.sql(dialect=ENGINE)}: patterns are read by Java's rules" for node in tree.find_all(exp.RegexpLike)
    ]
    doubts += [
        f"{node.name.lower()}: it is passed on as it stands, and may be another function in Spark"
        for node in tree.find_all(exp.Anonymous)
        if node.name.lower() not in _WINDOWS.values()
    ]
    return tree.sql(dialect=ENGINE, pretty=True), doubts


def lay_out(query: str, engine: str) -> list[str]:
    """Return the lines of a query as its own dialect lays it out, so that a difference is one of words."""
    (tree,) = _parse(query, engine)
    lines: list[str] = tree.sql(dialect=dialect_of(engine), pretty=True).splitlines()
    return lines


def _parse(query: str, engine: str) -> list[Any]:
    dialect = dialect_of(engine)
    tokens = without_table_words(without_emission(dialect.tokenize(query)))
    parsed: list[Any] = dialect.parser().parse(tokens, query)
    return parsed


def _read(query: str, engine: str, where: str) -> Expression:
    try:
        found = _parse(query, engine)
    except ParseError as error:
        first = error.errors[0]
        reported = f"{first['highlight']!r} in line {first['line']}, column {first['col']} ({first['description']})"
        raise MalformedError("query", where=where, expected=f"SQL of {engine}", found=reported) from error
    except (SqlglotError, RecursionError) as error:
        raise MalformedError("query", where=where, expected=f"SQL of {engine}", found=type(error).__name__) from error
    if len(found) != 1 or found[0] is None:
        raise MalformedError("query", where=where, expected="one query", found=f"{len(found)}")
    return found[0]


def _put_windows(tree: Expression, where: str) -> None:
    """Write windows of streams as Spark does: ``TUMBLE(t, INTERVAL '1' DAY)`` is ``window(t, '1 DAY')``."""
    for call in [*tree.find_all(exp.Anonymous)]:
        name = call.name.upper()
        kind, _, end = name.partition("_")
        if kind not in _WINDOWS:
            continue
        if name.endswith(_NO_COUNTERPART):
            raise MalformedError("query", where=where, expected=f"{kind}_START or {kind}_END", found=name)
        call.replace(exp.column(end.lower(), table=_WINDOWS[kind]) if end else _window(kind, call, where))


def _window(kind: str, call: Expression, where: str) -> Expression:
    time, *spans = call.expressions
    if len(spans) != (2 if kind == "HOP" else 1) or not all(isinstance(each, exp.Interval) for each in spans):
        wanted = f"{kind}(event_time, {'INTERVAL ..., ' if kind == 'HOP' else ''}INTERVAL ...) in GROUP BY"
        raise MalformedError("query", where=where, expected=wanted, found=call.sql(dialect=ENGINE))
    # HOP(time, slide, size) is window(time, size, slide).
    texts = [exp.Literal.string(f"{each.name} {each.text('unit')}".strip()) for each in reversed(spans)]
    return exp.Anonymous(this=_WINDOWS[kind], expressions=[time, *texts])


_SPANS: Final = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "SESSION": ("GAP",)}
"""Names of the intervals of each, in their order."""
_COLUMNS: Final = {"window_start": "start", "window_end": "end"}


_EMISSION: Final = ("EMIT", "ON", "WINDOW", "CLOSE")


def without_emission(tokens: list[Any]) -> list[Any]:
    """Leave out ``EMIT ON WINDOW CLOSE`` at the end: Spark's windows here are given when a watermark closes them."""
    words = [token.text.upper() for token in tokens if token.token_type is not TokenType.SEMICOLON]
    return tokens[: len(words) - len(_EMISSION)] if words[-len(_EMISSION) :] == [*_EMISSION] else tokens


def _check_laterals(tree: Expression, where: str) -> None:
    """Reject the join as of a time as Flink writes it."""
    for lateral in tree.find_all(exp.Lateral):
        call = lateral.this
        while not isinstance(call, exp.Func) and isinstance(call.this, exp.Expression):
            call = call.this
        table = call.name if isinstance(call, exp.Anonymous) else "t"
        expected = (
            f"JOIN {table} ON its key, with {table} and its primaryKey under temporalTables, which is then read as of "
            "the event time of the other side"
        )
        raise MalformedError("query", where=where, expected=expected, found=lateral.sql(dialect=ENGINE)[:200])


def without_table_words(tokens: list[Any]) -> list[Any]:
    """Leave out the word ``TABLE`` before a call and before an argument, where the library cannot read it."""
    kinds = [token.token_type for token in tokens]
    before = [None, *kinds]
    after = [*kinds[1:], None]
    return [
        token
        for place, token in enumerate(tokens)
        if kinds[place] is not TokenType.TABLE
        or not (after[place] is TokenType.L_PAREN or before[place] in {TokenType.L_PAREN, TokenType.FARROW})
    ]


def put_window_tables(tree: "Expression", where: str) -> None:
    """Write tables of windows as groups by the call that they are: ``GROUP BY TUMBLE(t, INTERVAL '1' DAY)``.

    Raises:
        MalformedError: One that Spark has nothing for, with its place.
    """
    for select in [*tree.find_all(exp.Select)]:
        source = select.args.get("from_")
        if source is None:
            continue
        held = source.this
        table = held.this if isinstance(held, exp.Subquery) else held
        call = table.this if isinstance(table, exp.Table) else None
        if isinstance(call, exp.Anonymous) and call.name.upper() in {*_SPANS, "CUMULATE"}:
            _put(select, call, held.alias or table.alias, where)


def _put(select: exp.Select, call: exp.Anonymous, alias: str, where: str) -> None:
    kind = call.name.upper()
    if kind not in _SPANS:
        _reject(where, "TUMBLE, HOP or SESSION", kind)
    names = ("DATA", "TIMECOL", *_SPANS[kind])
    given: dict[str, Any] = {}
    for name, each in zip(names, call.expressions, strict=False):
        is_named = isinstance(each, exp.Kwarg)
        given[each.name.upper() if is_named else name] = each.expression if is_named else each
    if set(given) != set(names) or len(call.expressions) != len(names):
        _reject(where, f"{kind}({', '.join(names)})", call.sql())
    time = given["TIMECOL"]
    if isinstance(time, exp.Anonymous) and time.name.upper() == "DESCRIPTOR" and len(time.expressions) == 1:
        time = time.expressions[0]
    data = given["DATA"]
    alias = alias or data.alias
    data = data.this if isinstance(data, exp.Alias) else data
    if not isinstance(data, exp.Column) or not isinstance(time, exp.Column):
        _reject(where, f"the name of a table and of its time column in {kind}", call.sql())
    group = select.args.get("group")
    keys = [] if group is None else group.expressions
    others = [key for key in keys if not _is_window_column(key)]
    if len(others) == len(keys):
        _reject(where, f"{kind} in GROUP BY, or GROUP BY window_start, window_end", call.sql())
    if kind == "SESSION" and others:
        _reject(where, "SESSION over all that GROUP BY has, as in GROUP BY SESSION(t, INTERVAL ...), key", call.sql())
    window = exp.Anonymous(this=kind, expressions=[time, *(given[name] for name in _SPANS[kind])])
    group.set("expressions", [window, *others])
    for column in [*_own_columns(select)]:
        name = column.name.lower()
        if name == "window_time":
            _reject(where, "window_start or window_end", "window_time")
        if _is_window_column(column):
            end = exp.Anonymous(this=f"{kind}_{_COLUMNS[name].upper()}", expressions=[])
            is_shown = column.parent is select
            column.replace(exp.alias_(end, column.name) if is_shown else end)
    named = exp.Table(this=data.this, db=data.args.get("table"))
    select.set("from_", exp.From(this=exp.alias_(named, alias, table=True) if alias else named))


def _own_columns(select: exp.Select) -> "Iterator[exp.Column]":
    """Yield the columns that a query names itself, not those of queries inside it."""
    for node in select.walk(prune=lambda each: isinstance(each, exp.Select) and each is not select):
        if isinstance(node, exp.Column):
            yield node


def _is_window_column(node: "Expression") -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in _COLUMNS


def _reject(where: str, expected: str, found: str) -> NoReturn:
    raise MalformedError("query", where=where, expected=expected, found=found)
