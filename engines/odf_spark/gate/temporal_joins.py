"""Joins with a table as it was: ``rates FOR SYSTEM_TIME AS OF orders.event_time``.

A temporal table stands for its versions, each of which says from when and until when it was the newest one of its key.
So a join with it is a join like any other, whose condition says besides that the version was in force at that time: the
words are taken out, and what they mean is put into the condition.

Spark's parser takes fixed times only, so the words are taken out of the text: the table gets a name that no query can
write, under which its time is remembered until the plan is parsed. Quoted text and comments stay as they are.

Source: clauses ASOF-1 and ASOF-2 in ``spec/extensions/as-of-joins.md``.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_engines.host.queries import OPAQUE
from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.map_class import SUBQUERIES, column_definitions
from odf_spark.gate.trees import items, iter_expression, iter_plan, leads_to, shown, simple_name, view_name
from odf_spark.java_side import java_class, scala_object, scala_sequence

_NAME = r"(?:[A-Za-z_]\w*|`(?:[^`]|``)+`)"
_TRAVEL = rf"""
    (?P<table>{_NAME}) \s+ (?:FOR\s+)? (?:SYSTEM_TIME|TIMESTAMP) \s+ AS \s+ OF \s+
    (?P<time>{_NAME}(?:\s*\.\s*{_NAME})*) (?![\w.]) (?!\s*['"(+*/-])
"""
_TOKEN = re.compile(rf"{_TRAVEL} | {OPAQUE} | [A-Za-z_]\w*", re.VERBOSE | re.DOTALL | re.IGNORECASE)
_PART = re.compile(_NAME)


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A table, and the parts of the name of the column as of which it is asked."""

    table: str
    time: tuple[str, ...]


def take_times(sql: str) -> tuple[str, Mapping[str, AskedTime]]:
    """Return a query without its times, and what stands in it for a table as of a time."""
    asked: dict[str, AskedTime] = {}

    def take(found: re.Match[str]) -> str:
        if not found["table"]:
            return found[0]
        name = f"\0{len(asked)}"
        parts = tuple(map(_plain, _PART.findall(found["time"])))
        asked[name] = AskedTime(_plain(found["table"]), parts)
        return f"`{name}`"

    return _TOKEN.sub(take, sql), asked


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


__all__ = ["FROM", "UNTIL", "AsOfQuery", "find_as_of", "find_asked_times", "put_versions"]

# No name in a query can start with a NUL character, so these cannot meet a column of the user's.
FROM, UNTIL = "\0from", "\0until"

_UNRESOLVED = "org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute"
_RELATION = "org.apache.spark.sql.catalyst.analysis.UnresolvedRelation"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_FILTER = "org.apache.spark.sql.catalyst.plans.logical.Filter"
_JOIN = "org.apache.spark.sql.catalyst.plans.logical.Join"
_PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"
_ALL_BUT = "org.apache.spark.sql.catalyst.analysis.UnresolvedStarExceptOrReplace"
_WITH = "org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith"
_REWRITE = "FROM input JOIN rates FOR SYSTEM_TIME AS OF input.event_time AS r ON input.key = r.key"
_PLANS = frozenset(
    {
        "CTERelationDef",
        "CTERelationRef",
        "Filter",
        "Join",
        "PipeOperator",
        "Project",
        "SubqueryAlias",
        "View",
        "WithCTE",
    }
)
_Tables = Mapping[str, int | None] | Collection[str]


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a temporal table is called in a query, the time as of which it is asked, and its alias."""

    name: list[str]
    time: Any
    table: str


_Pending = list[_Asked]


@dataclass(frozen=True, slots=True)
class AsOfQuery:
    """A query that joins one input with versions of others.

    Attributes:
        probe: The input whose rows are joined, each with the versions of its event time.
        passes_event_time: Whether the output's event time is that of these rows.
    """

    probe: str
    passes_event_time: bool


def put_versions(plan: Any, asked: Mapping[str, AskedTime], tables: _Tables) -> Any:
    """Put versions of temporal tables in place of what stands for them as of a time.

    Args:
        plan: Parsed.
        asked: What stands for which table as of which time, by name.
        tables: Names of the temporal tables. Where they have times, in microseconds since 1970, up to which their
            versions are known (None: up to none), joins leave out rows of later times, which have no answer yet.

    Returns:
        The plan, in which these names stand for versions with the columns ``FROM`` and ``UNTIL``.

    Raises:
        InvalidQueryError: A table is asked as of a time that is no temporal table.
        NotReproducibleError: A temporal table stands where it says nothing, or without its time.
    """
    for each in asked.values():
        if each.table not in tables:
            reported = f"{each.table} is no temporal table; declare it with its primary key in temporalTables"
            raise InvalidQueryError(f"{reported}, under its alias")
    for node in iter_plan(plan):
        if _name_of(node) in tables:
            reason = "a temporal table changes over time, and nothing says which time is meant"
            raise NotReproducibleError(_name_of(node), reason, _REWRITE)
    rewritten, pending = _rewrite(plan, asked, tables)
    if pending or any(_name_of(node) in asked for node in iter_plan(rewritten)):
        reason = "it stands in no join, or in one inside an expression"
        raise NotReproducibleError("FOR SYSTEM_TIME AS OF", reason, f"{_REWRITE}, in a step of its own")
    return rewritten


def _name_of(node: Any) -> str:
    """Return the name of the relation that a node stands for, empty for any other node."""
    return str(node.multipartIdentifier().last()) if simple_name(node) == "UnresolvedRelation" else ""


def _rewrite(node: Any, asked: Mapping[str, AskedTime], tables: _Tables) -> tuple[Any, _Pending]:
    name = _name_of(node)
    if name in asked:
        table = asked[name].table
        time = java_class(_UNRESOLVED)(scala_sequence(asked[name].time))
        relation = java_class(_RELATION)(scala_sequence([table]), node.options(), node.isStreaming())
        return relation, [_Asked([table], time, table)]
    children = items(node.children())
    rewritten = [_rewrite(each, asked, tables) for each in children]
    if simple_name(node) == "Join" and any(pending for _, pending in rewritten):
        return _rewrite_join(node, rewritten, tables), []
    pending = [each for _, more in rewritten for each in more]
    if any(new is not old for (new, _), old in zip(rewritten, children, strict=True)):
        node = node.withNewChildren(scala_sequence(new for new, _ in rewritten))
    if simple_name(node) == "UnresolvedWith":
        node = _rewrite_tables(node, asked, tables)
    if simple_name(node) == "SubqueryAlias":
        pending = [replace(each, name=[str(node.alias())]) for each in pending]
    return node, pending


def _rewrite_tables(node: Any, asked: Mapping[str, AskedTime], tables: _Tables) -> Any:
    """Rewrite the tables that a query defines (WITH)."""
    defined = []
    for each in items(node.cteRelations()):
        name, table, depth = (each.productElement(place) for place in range(3))
        new, pending = _rewrite(table, asked, tables)
        defined.append(java_class("scala.Tuple3")(name, table if pending else new, depth))
    return java_class(_WITH)(node.child(), scala_sequence(defined), node.allowRecursion())


def _rewrite_join(node: Any, sides: list[tuple[Any, _Pending]], tables: _Tables) -> Any:
    (left, of_left), (right, of_right) = sides
    kind = str(node.joinType().sql())
    if simple_name(node.joinType()) not in {"Inner", "LeftOuter"} or (of_left and kind != "INNER"):
        reason = "a row is joined with what was in force at its time, or with nothing: JOIN or LEFT JOIN with ON"
        raise NotReproducibleError(f"{kind} JOIN", reason, _REWRITE)
    condition = node.condition().get() if node.condition().isDefined() else None
    for each in (*of_left, *of_right):
        in_force = _in_force(each.name, each.time)
        condition = in_force if condition is None else _expression("And", condition, in_force)
    joined = java_class(_JOIN)(left, right, node.joinType(), java_class("scala.Some")(condition), node.hint())
    if isinstance(tables, Mapping):
        for each in (*of_left, *of_right):
            joined = java_class(_FILTER)(_has_answer(each.time, tables[each.table]), joined)
    # What is added inside is seen by nothing above, so that * and DISTINCT mean the columns of the tables.
    added = scala_sequence(scala_sequence([*each.name, end]) for each in (*of_left, *of_right) for end in (FROM, UNTIL))
    none = java_class("scala.Option").empty()
    return java_class(_PROJECT)(scala_sequence([java_class(_ALL_BUT)(none, added, none)]), joined)


def _has_answer(time: Any, reached_us: int | None) -> Any:
    """Say that nothing new can be in force at a time, or that there is none."""
    has_none = _expression("IsNull", time)
    if reached_us is None:
        return has_none
    # No literal of a time: those are what the text of a query has, which are looked at.
    reached = _expression("MicrosToTimestamp", scala_object(f"{_EXPRESSIONS}.Literal$").apply(reached_us))
    return _expression("Or", has_none, _expression("LessThanOrEqual", time, reached))


def _in_force(name: list[str], time: Any) -> Any:
    begin, end = (java_class(_UNRESOLVED)(scala_sequence([*name, column])) for column in (FROM, UNTIL))
    ends_later = _expression("Or", _expression("IsNull", end), _expression("LessThan", time, end))
    return _expression("And", _expression("GreaterThanOrEqual", time, begin), ends_later)


def _expression(name: str, *children: Any) -> Any:
    return java_class(f"{_EXPRESSIONS}.{name}")(*children)


def find_as_of(
    plan: Any, inputs: Mapping[str, Vocabulary], tables: Collection[str], vocabulary: Vocabulary
) -> AsOfQuery | None:
    """Look at an analysed plan in which versions stand for temporal tables.

    Args:
        plan: Analysed.
        inputs: Vocabularies of the inputs by alias.
        tables: Those of them that are temporal tables.
        vocabulary: Of the output.

    Returns:
        None where there are more than lists, filters and joins as of the event time of one input (ASOF-9).

    Raises:
        NotReproducibleError: A temporal table is read as of a time of its own, or not at all.
    """
    nodes = list(iter_plan(plan, inputs))
    read = [str(view_name(node)) for node in nodes if (view_name(node) or "") in inputs]
    for name in tables:
        if name not in read:
            raise NotReproducibleError(name, "the query does not read this temporal table", _REWRITE)
    times = [time for node in nodes for time in find_asked_times(node)]
    probes = [name for name in read if name not in tables]
    if len(probes) != 1 or set(read) != set(inputs) or not all(map(_is_linear, nodes)):
        return None
    view = next(node for node in nodes if view_name(node) == probes[0])
    event_time = inputs[probes[0]].event_time
    given = {int(each.exprId().id()) for each in items(view.output()) if str(each.name()) == event_time}
    made_of = column_definitions(nodes, view)
    if not all(leads_to(time, given, made_of) for time in times):
        return None
    column = next(each for each in items(plan.output()) if str(each.name()) == vocabulary.event_time)
    return AsOfQuery(probes[0], leads_to(column, given, made_of))


def _is_linear(node: Any) -> bool:
    """Whether a node is a list, a filter or a join as of a time."""
    if simple_name(node) not in _PLANS or (simple_name(node) == "Join" and not find_asked_times(node)):
        return False
    return not any(
        simple_name(each) in SUBQUERIES for top in items(node.expressions()) for each in iter_expression(top)
    )


def find_asked_times(node: Any) -> list[Any]:
    """Return the times as of which a join asks.

    Raises:
        NotReproducibleError: One is a column of what is asked.
    """
    if simple_name(node) != "Join" or not node.condition().isDefined():
        return []
    found = []
    for each in iter_expression(node.condition().get()):
        if simple_name(each) == "LessThan" and _is_until(each.right()):
            time, until = _uncast(each.left()), _uncast(each.right())
            side = next(side for side in (node.left(), node.right()) if side.outputSet().contains(until))
            if side.outputSet().contains(time):
                reason = "a temporal table is asked as of a time of its own, and not of the rows that it is joined with"
                raise NotReproducibleError(shown(time), reason, _REWRITE)
            found.append(time)
    return found


def _is_until(column: Any) -> bool:
    column = _uncast(column)
    return simple_name(column) == "AttributeReference" and str(column.name()) == UNTIL


def _uncast(column: Any) -> Any:
    return column.child() if simple_name(column) == "Cast" else column
