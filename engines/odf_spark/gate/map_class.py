"""Whether an analysed query is a *map*: projections and filters over the rows of one input.

A map treats every row by itself. That makes its result on a changelog a sound changelog: see ``changelog``.

Source: clauses GATE-7 to GATE-9; MAP-1 to MAP-3 in ``spec/extensions/changelog-maps.md``.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_engines.host.event_times import NoEventTimeError
from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.trees import (
    expressions_of,
    items,
    iter_expression,
    operands_of,
    shown,
    simple_name,
    view_name,
)


class NoMapError(Exception):
    """The query is no map; it may be a maintained view."""


_MAP_PLANS = frozenset({"CTERelationRef", "Filter", "PipeOperator", "Project", "SubqueryAlias", "View", "WithCTE"})

_NEVER_IN_MAPS = frozenset(
    {"Aggregate", "Distinct", "Except", "GlobalLimit", "Intersect", "Join", "LocalLimit", "Offset", "Sort", "Union"}
)

SUBQUERIES = frozenset(
    {"DynamicPruningSubquery", "Exists", "InSubquery", "LateralSubquery", "ListQuery", "ScalarSubquery"}
)


@dataclass(frozen=True, slots=True)
class MapQuery:
    """What is known about a map.

    Attributes:
        input_alias: Of the one input that it reads.
        selects_op: Whether the query itself passes the operation through.
        passes_event_time: Whether the output's event time is the input's own, under whatever name.
    """

    input_alias: str
    selects_op: bool
    passes_event_time: bool


def is_no_map(parsed: Any) -> bool:
    """Say whether the text of a query tells already that it is no map, so that it need not be analysed as one.

    Args:
        parsed: The last query of a transform; of what it only defines, it may read nothing.
    """
    waiting = [parsed]
    while waiting:
        node = waiting.pop()
        if simple_name(node) in _NEVER_IN_MAPS:
            return True
        waiting += operands_of(node)
    return False


def check_map(plan: Any, inputs: Mapping[str, Vocabulary], vocabulary: Vocabulary) -> MapQuery:
    """Check an analysed plan, with the views of earlier steps still visible in it.

    Args:
        plan: Analysed.
        inputs: Vocabularies of the inputs by alias, each registered as a view of that name.
        vocabulary: Of the output.

    Raises:
        NoMapError: It has a clause that no map has.
        NotReproducibleError: A use of the changelog's own columns.
        InvalidQueryError: Output columns that a transform must not have, or must have.
    """
    nodes = list(_iter_read_plans(plan, inputs))
    for node in nodes:
        if simple_name(node) not in _MAP_PLANS:
            raise NoMapError(simple_name(node))
        _reject_subqueries(node)
    read = [node for node in nodes if (view_name(node) or "") in inputs]
    if len(read) != 1 or len(inputs) != 1:
        raise NoMapError("a query over several inputs")
    alias, view = next(iter(inputs)), read[0]
    own = _changelog_attributes(view, inputs[alias], nodes)
    for node in nodes:
        _check_own_columns(node, own)
    selects_op = _check_output(plan, own, vocabulary, inputs[alias])
    return MapQuery(alias, selects_op, _passes_event_time(plan, nodes, view, inputs[alias], vocabulary))


def _iter_read_plans(plan: Any, inputs: Collection[str]) -> Iterator[Any]:
    """Yield the plans whose rows get into the result: of common table expressions only those that are referred to."""
    tables: dict[int, Any] = {}
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        match simple_name(node):
            case "WithCTE":
                tables.update((int(each.id()), each.child()) for each in items(node.cteDefs()))
                waiting.append(node.plan())
            case "CTERelationRef":
                waiting.append(tables[int(node.cteId())])
            case _ if view_name(node) not in inputs:
                waiting += reversed(operands_of(node))


def _reject_subqueries(node: Any) -> None:
    for expression in expressions_of(node):
        for each in iter_expression(expression):
            if simple_name(each) in SUBQUERIES:
                raise NoMapError("a subquery")


def _changelog_attributes(view: Any, vocabulary: Vocabulary, nodes: list[Any]) -> dict[int, str]:
    """Return the columns that describe the log and not the row, by Spark's numbers of them.

    Tables that a query defines, and steps, know the same column under numbers of their own.
    """
    names = (vocabulary.offset, vocabulary.op, vocabulary.system_time)
    found = {int(each.exprId().id()): str(each.name()) for each in items(view.output()) if str(each.name()) in names}
    for known_as, column in reversed([*_iter_renumbered(nodes, view)]):
        if (inner := int(column.exprId().id())) in found:
            found[int(known_as.exprId().id())] = found[inner]
    return found


def _iter_renumbered(nodes: list[Any], view: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each column of a reference that has a number of its own, with the column it stands for, from the top."""
    tables = {
        int(each.id()): each.child()
        for node in nodes
        if simple_name(node) == "WithCTE"
        for each in items(node.cteDefs())
    }
    for node in nodes:
        name = simple_name(node)
        if name == "CTERelationRef" or (name == "View" and view_name(node) != view_name(view)):
            below = tables[int(node.cteId())] if name == "CTERelationRef" else node.child()
            for known_as, column in zip(items(node.output()), items(below.output()), strict=True):
                if not known_as.exprId().equals(column.exprId()):
                    yield known_as, column


def _check_own_columns(node: Any, own: dict[int, str]) -> None:
    """Allow the changelog's columns only as they are, in a list of columns."""
    if simple_name(node) not in ("Filter", "Project"):
        return
    is_list = simple_name(node) == "Project"
    for expression in expressions_of(node):
        if is_list and simple_name(expression) == "AttributeReference":
            continue
        for each in iter_expression(expression):
            if simple_name(each) == "AttributeReference" and int(each.exprId().id()) in own:
                raise NotReproducibleError(
                    shown(expression),
                    f"column {own[int(each.exprId().id())]} describes the change, not the row, and a retraction has "
                    "another one than the row it takes back",
                    "leave the column out; operations are carried along by themselves",
                )


def _check_output(plan: Any, own: dict[int, str], vocabulary: Vocabulary, source: Vocabulary) -> bool:
    names: list[str] = []
    selects_op = False
    for attribute in items(plan.output()):
        name, kept = str(attribute.name()), own.get(int(attribute.exprId().id()))
        if name in (vocabulary.offset, vocabulary.system_time) or kept in (source.offset, source.system_time):
            raise InvalidQueryError(
                f"the output must not contain {name}; every step makes its own: SELECT * EXCEPT ({name}) leaves it out"
            )
        if name == vocabulary.op or kept == source.op:
            if name != vocabulary.op or kept != source.op:
                raise NotReproducibleError(
                    name, f"the output's {vocabulary.op} can only be the input's own", f"leave {name} out"
                )
            selects_op = True
        names.append(name)
    for name in names:
        if names.count(name) > 1:
            raise InvalidQueryError(f"the output has more than one column {name}; give each its own name with AS")
    _check_event_time(plan, vocabulary)
    return selects_op


def _check_event_time(plan: Any, vocabulary: Vocabulary) -> None:
    for attribute in items(plan.output()):
        if str(attribute.name()) == vocabulary.event_time:
            kind = str(attribute.dataType().typeName())
            if kind not in ("date", "timestamp", "timestamp_ntz"):
                raise InvalidQueryError(f"column {vocabulary.event_time}: expected a date or timestamp, found {kind}")
            return
    raise no_event_time(plan, vocabulary)


def no_event_time(plan: Any, vocabulary: Vocabulary) -> NoEventTimeError:
    """Return the error of a plan that has no event time, with those columns that could be it."""
    columns = [(str(each.name()), str(each.dataType().typeName())) for each in items(plan.output())]
    log = (vocabulary.offset, vocabulary.op, vocabulary.system_time)
    times = [name for name, kind in columns if kind in ("date", "timestamp", "timestamp_ntz") and name not in log]
    return NoEventTimeError(vocabulary.event_time, [name for name, _kind in columns], times)


def _passes_event_time(plan: Any, nodes: list[Any], view: Any, source: Vocabulary, vocabulary: Vocabulary) -> bool:
    """Follow the output's event time down to a column of the input, through names but through no expression."""
    given = {int(each.exprId().id()) for each in items(view.output()) if str(each.name()) == source.event_time}
    made_of = column_definitions(nodes, view)
    column = next(each for each in items(plan.output()) if str(each.name()) == vocabulary.event_time)
    while simple_name(column) in ("Alias", "AttributeReference", "Cast"):
        if simple_name(column) == "Cast":
            child = column.child()
            if str(child.dataType().catalogString()) != str(column.dataType().catalogString()):
                return False
            column = child
        elif simple_name(column) == "Alias":
            column = column.child()
        elif (number := int(column.exprId().id())) in given:
            return True
        elif (column := made_of.pop(number, None)) is None:
            return False
    return False


def column_definitions(nodes: list[Any], view: Any) -> dict[int, Any]:
    """Return what every column of a plan's lists is made of, by Spark's number of it."""
    found: dict[int, Any] = {
        int(each.exprId().id()): each
        for node in nodes
        if simple_name(node) == "Project"
        for each in items(node.projectList())
    }
    found.update((int(known_as.exprId().id()), column) for known_as, column in _iter_renumbered(nodes, view))
    # A column that a list passes on is made of itself: it is found further down.
    return {number: each for number, each in found.items() if not _is_itself(number, each)}


def _is_itself(number: int, expression: Any) -> bool:
    return simple_name(expression) == "AttributeReference" and int(expression.exprId().id()) == number
