"""Queries that were written for another engine, as Spark reads them (PLAN-17).

The dialect is translated by a library; what it does not know, windows of streams, is translated here. Nothing is run:
what comes out is graded like any other query, and whoever adds it sees what was changed and what to look at.
"""

from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

from odf_engines import dialects
from odf_protocol.errors import MalformedError
from odf_protocol.events import SqlQueryStep, TransformSql

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.expressions import Expression

ENGINE: Final = "spark"
DIALECTS: Final = frozenset({"datafusion", "flink", "risingwave"})
"""Engines whose SQL can be translated."""

_ENGINE_DOUBTS: Final = {
    "datafusion": "DataFusion sees the new rows of each step alone; here groups and joins are over whole inputs",
    "flink": "Flink leaves late rows out without counting them, and closes a window a millisecond earlier",
    "risingwave": "RisingWave's rows are in force at once; here a window is given when a watermark closes it",
}
_WINDOWS: Final = {"TUMBLE": "window", "HOP": "window", "SESSION": "session_window"}
_NO_COUNTERPART: Final = ("_ROWTIME", "_PROCTIME")


@dataclass(frozen=True, slots=True)
class Translation:
    """A transform that was translated.

    Attributes:
        transform: For the engine spark.
        engine: That the query was written for.
        difference: Of the queries before and after, line by line, as ``diff -u`` writes it.
        doubts: What may mean something else now.
    """

    transform: TransformSql
    engine: str
    difference: tuple[str, ...]
    doubts: tuple[str, ...]


def translate_transform(transform: TransformSql, *, where: str, is_preprocess: bool = False) -> Translation | None:
    """Translate a transform that names another engine; None: it names this one.

    Args:
        transform: As a manifest declares it.
        where: What it makes, for messages.
        is_preprocess: Its queries prepare an ingest, whose rows both engines see alone.

    Raises:
        MalformedError: The engine's dialect is not known; or a query cannot be read in it, or has a part that Spark has
            nothing for.
    """
    engine = transform.engine.lower()
    if engine == ENGINE:
        return None
    if engine not in DIALECTS:
        known = f"an engine whose SQL is known ({', '.join(sorted(DIALECTS))})"
        raise MalformedError("transform", where=where, expected=known, found=transform.engine)
    steps = transform.queries or (SqlQueryStep(query=transform.query or ""),)
    doubts: dict[str, None] = {} if is_preprocess else {_ENGINE_DOUBTS[engine]: None}
    written: list[SqlQueryStep] = []
    difference: list[str] = []
    for number, step in enumerate(steps, 1):
        query, more = _translate_query(step.query, engine, where=f"{where}, query {step.alias or number}")
        doubts |= dict.fromkeys(more)
        written.append(replace(step, query=query))
        names = (f"{engine}: {step.alias or number}", f"{ENGINE}: {step.alias or number}")
        difference += unified_diff(_laid_out(step.query, engine), query.splitlines(), *names, lineterm="")
    translated = replace(transform, engine=ENGINE, version=None, query=None, queries=tuple(written))
    return Translation(translated, engine, tuple(difference), tuple(doubts))


def _translate_query(query: str, engine: str, *, where: str) -> tuple[str, list[str]]:
    from sqlglot import exp

    tree = _read(query, engine, where)
    dialects.window_tables.put_window_tables(tree, where)
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


def dialect_of(engine: str) -> "Dialect":
    """Return how an engine's SQL is read: by a dialect of the library, or one that it lacks; if unknown, as Spark's."""
    from sqlglot.dialects.dialect import Dialect

    if engine == "flink":
        return dialects.flink.Flink()
    if engine == "datafusion":
        return dialects.datafusion.DataFusion()
    return Dialect.get_or_raise(engine if engine in DIALECTS else ENGINE)


def _laid_out(query: str, engine: str) -> list[str]:
    """Return the lines of a query as its own dialect lays it out, so that a difference is one of words."""
    (tree,) = _parse(query, engine)
    lines: list[str] = tree.sql(dialect=dialect_of(engine), pretty=True).splitlines()
    return lines


def _parse(query: str, engine: str) -> list[Any]:
    dialect = dialect_of(engine)
    parsed: list[Any] = dialect.parser().parse(
        dialects.window_tables.without_table_words(dialect.tokenize(query)), query
    )
    return parsed


def _read(query: str, engine: str, where: str) -> "Expression":
    from sqlglot.errors import ParseError, SqlglotError

    try:
        found = _parse(query, engine)
    except ParseError as error:
        first = error.errors[0]
        told = f"{first['highlight']!r} in line {first['line']}, column {first['col']} ({first['description']})"
        raise MalformedError("query", where=where, expected=f"SQL of {engine}", found=told) from error
    except (SqlglotError, RecursionError) as error:
        raise MalformedError("query", where=where, expected=f"SQL of {engine}", found=type(error).__name__) from error
    if len(found) != 1 or found[0] is None:
        raise MalformedError("query", where=where, expected="one query", found=f"{len(found)}")
    return found[0]


def _put_windows(tree: "Expression", where: str) -> None:
    """Write windows of streams as Spark does: ``TUMBLE(t, INTERVAL '1' DAY)`` is ``window(t, '1 DAY')``."""
    from sqlglot import exp

    for call in [*tree.find_all(exp.Anonymous)]:
        name = call.name.upper()
        kind, _, end = name.partition("_")
        if kind not in _WINDOWS:
            continue
        if name.endswith(_NO_COUNTERPART):
            raise MalformedError("query", where=where, expected=f"{kind}_START or {kind}_END", found=name)
        call.replace(_end_of(kind, end) if end else _window(kind, call, where))


def _end_of(kind: str, end: str) -> "Expression":
    from sqlglot import exp

    return exp.column(end.lower(), table=_WINDOWS[kind])


def _window(kind: str, call: "Expression", where: str) -> "Expression":
    from sqlglot import exp

    time, *spans = call.expressions
    if len(spans) != (2 if kind == "HOP" else 1) or not all(isinstance(each, exp.Interval) for each in spans):
        wanted = f"{kind}(event_time, {'INTERVAL ..., ' if kind == 'HOP' else ''}INTERVAL ...) in GROUP BY"
        raise MalformedError("query", where=where, expected=wanted, found=call.sql(dialect=ENGINE))
    # HOP(time, slide, size) is window(time, size, slide).
    texts = [exp.Literal.string(f"{each.name} {each.text('unit')}".strip()) for each in reversed(spans)]
    return exp.Anonymous(this=_WINDOWS[kind], expressions=[time, *texts])
