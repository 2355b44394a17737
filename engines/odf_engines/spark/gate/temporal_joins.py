"""Joins with a table as it was: ``rates FOR SYSTEM_TIME AS OF orders.event_time``.

A temporal table stands for its versions, each of which says from when and until when it was the newest one of its key.
So a join with it is a join like any other, whose condition says besides that the version was in force at that time: the
words are taken out of the parsed plan, and what they mean is put into the condition.

Source: clauses ASOF-1 and ASOF-2 in ``spec/extensions/as-of-joins.md``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from odf_engines.errors import InvalidQueryError, NotReplayableError
from odf_engines.spark.gate.asked_times import AskedTime
from odf_engines.spark.gate.map_class import SUBQUERIES, column_definitions
from odf_engines.spark.gate.trees import items, iter_expression, iter_plan, leads_to, shown, simple_name, view_name
from odf_engines.spark.java_classes import java_class, scala_sequence
from odf_protocol.vocabulary import Vocabulary

__all__ = ["FROM", "UNTIL", "AsOfQuery", "check_as_of", "put_versions"]

# No name in a query can start with a NUL character, so these cannot meet a column of the user's.
FROM, UNTIL = "\0from", "\0until"

_UNRESOLVED = "org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute"
_RELATION = "org.apache.spark.sql.catalyst.analysis.UnresolvedRelation"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_JOIN = "org.apache.spark.sql.catalyst.plans.logical.Join"
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
_Pending = list[tuple[list[str], Any]]  # how a temporal table is called, and the time of which it is asked


@dataclass(frozen=True, slots=True)
class AsOfQuery:
    """A query that joins one input with versions of others.

    Attributes:
        probe: The input whose rows are joined, each with the versions of its event time.
        passes_event_time: Whether the output's event time is that of these rows.
    """

    probe: str
    passes_event_time: bool


def put_versions(plan: Any, asked: Mapping[str, AskedTime], tables: Collection[str]) -> Any:
    """Put versions of temporal tables in place of what stands for them as of a time.

    Args:
        plan: Parsed.
        asked: What stands for which table as of which time, by name.
        tables: Names of the temporal tables.

    Returns:
        The plan, in which these names stand for versions with the columns ``FROM`` and ``UNTIL``.

    Raises:
        InvalidQueryError: A table is asked as of a time that is no temporal table.
        NotReplayableError: A temporal table stands where it says nothing, or without its time.
    """
    for each in asked.values():
        if each.table not in tables:
            told = f"{each.table} is no temporal table; declare it with its primary key in temporalTables"
            raise InvalidQueryError(f"{told}, under its alias")
    for node in iter_plan(plan):
        if _name_of(node) in tables:
            reason = "a temporal table changes over time, and nothing says which time is meant"
            raise NotReplayableError(_name_of(node), reason, _REWRITE)
    rewritten, pending = _rewrite(plan, asked)
    if pending or any(_name_of(node) in asked for node in iter_plan(rewritten)):
        reason = "it stands in no join of the query itself"
        raise NotReplayableError(
            "FOR SYSTEM_TIME AS OF",
            reason,
            f"{_REWRITE}, in a step of its own; what groups its rows, in a derivative of its own",
        )
    return rewritten


def _name_of(node: Any) -> str:
    """Return the name of the relation that a node stands for, empty for any other node."""
    return str(node.multipartIdentifier().last()) if simple_name(node) == "UnresolvedRelation" else ""


def _rewrite(node: Any, asked: Mapping[str, AskedTime]) -> tuple[Any, _Pending]:
    name = _name_of(node)
    if name in asked:
        table = asked[name].table
        time = java_class(_UNRESOLVED)(scala_sequence(asked[name].time))
        relation = java_class(_RELATION)(scala_sequence([table]), node.options(), node.isStreaming())
        return relation, [([table], time)]
    if simple_name(node) == "Join":
        return _rewrite_join(node, asked), []
    children = items(node.children())
    rewritten = [_rewrite(each, asked) for each in children]
    pending = [each for _, more in rewritten for each in more]
    if not any(new is not old for (new, _), old in zip(rewritten, children, strict=True)):
        return node, pending
    node = node.withNewChildren(scala_sequence(new for new, _ in rewritten))
    if simple_name(node) == "SubqueryAlias":
        pending = [([str(node.alias())], time) for _, time in pending]
    return node, pending


def _rewrite_join(node: Any, asked: Mapping[str, AskedTime]) -> Any:
    (left, of_left), (right, of_right) = _rewrite(node.left(), asked), _rewrite(node.right(), asked)
    kind = str(node.joinType().sql())
    if kind not in {"INNER", "LEFT OUTER"} or (of_left and kind != "INNER"):
        reason = "a row is joined with what was in force at its time, or with nothing: JOIN or LEFT JOIN"
        raise NotReplayableError(f"{kind} JOIN", reason, _REWRITE)
    if not of_left and not of_right:
        raise NotReplayableError(
            f"{kind} JOIN", "beside joins as of a time there are lists and filters", "a derivative of its own"
        )
    condition = node.condition().get() if node.condition().isDefined() else None
    for name, time in (*of_left, *of_right):
        in_force = _in_force(name, time)
        condition = in_force if condition is None else _expression("And", condition, in_force)
    return java_class(_JOIN)(left, right, node.joinType(), java_class("scala.Some")(condition), node.hint())


def _in_force(name: list[str], time: Any) -> Any:
    begin, end = (java_class(_UNRESOLVED)(scala_sequence([*name, column])) for column in (FROM, UNTIL))
    ends_later = _expression("Or", _expression("IsNull", end), _expression("LessThan", time, end))
    return _expression("And", _expression("GreaterThanOrEqual", time, begin), ends_later)


def _expression(name: str, *children: Any) -> Any:
    return java_class(f"{_EXPRESSIONS}.{name}")(*children)


def check_as_of(
    plan: Any, inputs: Mapping[str, Vocabulary], tables: Collection[str], vocabulary: Vocabulary
) -> AsOfQuery:
    """Check an analysed plan in which versions stand for temporal tables.

    Args:
        plan: Analysed.
        inputs: Vocabularies of the inputs by alias.
        tables: Those of them that are temporal tables.
        vocabulary: Of the output.

    Raises:
        NotReplayableError: More than lists, filters and joins as of the event time of one input.
        InvalidQueryError: Versions get into the output.
    """
    nodes = list(iter_plan(plan, inputs))
    for node in nodes:
        subqueries = (each for top in items(node.expressions()) for each in iter_expression(top))
        if simple_name(node) not in _PLANS or any(simple_name(each) in SUBQUERIES for each in subqueries):
            reason = "beside joins as of a time there are lists and filters"
            raise NotReplayableError(simple_name(node), reason, "a derivative of its own for what else there is")
    read = [str(view_name(node)) for node in nodes if (view_name(node) or "") in inputs]
    probes = [name for name in read if name not in tables]
    if len(probes) != 1 or set(read) != set(inputs):
        reason = "it joins rows of one input, and every other one is a temporal table that it reads"
        raise NotReplayableError("FROM", reason, _REWRITE)
    if any(str(each.name()).startswith("\0") for each in items(plan.output())):
        raise InvalidQueryError("name the columns instead of *; a temporal table has more of them inside")
    view = next(node for node in nodes if view_name(node) == probes[0])
    event_time = inputs[probes[0]].event_time
    given = {int(each.exprId().id()) for each in items(view.output()) if str(each.name()) == event_time}
    made_of = column_definitions(nodes, view)
    for node in nodes:
        for time in _asked_times(node):
            if not leads_to(time, given, made_of):
                reason = f"it is asked as of a time that is not the event time of {probes[0]}"
                raise NotReplayableError(shown(time), reason, f"FOR SYSTEM_TIME AS OF {probes[0]}.{event_time}")
    column = next(each for each in items(plan.output()) if str(each.name()) == vocabulary.event_time)
    return AsOfQuery(probes[0], leads_to(column, given, made_of))


def _asked_times(node: Any) -> list[Any]:
    """Return the times as of which a join asks."""
    if simple_name(node) != "Join" or not node.condition().isDefined():
        return []
    return [
        _uncast(each.left())
        for each in iter_expression(node.condition().get())
        if simple_name(each) == "LessThan" and _is_until(each.right())
    ]


def _is_until(column: Any) -> bool:
    column = _uncast(column)
    return simple_name(column) == "AttributeReference" and str(column.name()) == UNTIL


def _uncast(column: Any) -> Any:
    return column.child() if simple_name(column) == "Cast" else column
