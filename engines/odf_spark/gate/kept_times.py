"""Whether the event time of a maintained view follows its inputs', so that watermarks of these say something of it.

A watermark says up to where an input is complete. A view is complete up to the lowest of its inputs' where rows that
come later, in the ordinary course, give it rows that are not older: where its event time is an input's own, the latest
of several, or one of these cut down to a unit of time. The earliest of a group is none: whatever comes later would
change rows of before.

Source: clause VIEW-8 in ``spec/extensions/maintained-views.md``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.trees import is_replaced, items, operands_of, simple_name, view_name
from odf_spark.gate.window_inputs import defined_tables

Units = tuple[str, ...]
"""To which a time is cut down, one after the other, as ``date_trunc`` names them."""

_PASSING = frozenset(
    {"Deduplicate", "Distinct", "Filter", "Generate", "GlobalLimit", "LocalLimit", "Offset", "PipeOperator", "Sort",
     "SubqueryAlias", "Window"}
)  # fmt: skip
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_MAX_EXPRESSIONS = 10_000  # guess: of one query, each looked at once for each way that leads to it


class _ComputedError(Exception):
    """The time is another value than one that the watermarks of inputs say something of."""


@dataclass(slots=True)
class _Search:
    inputs: Mapping[str, Vocabulary]
    tables: Mapping[int, Any]  # plans that the query defines (WITH)
    looked_at: int = 0


def find_kept_times(plan: Any, inputs: Mapping[str, Vocabulary], vocabulary: Vocabulary) -> frozenset[Units] | None:
    """Find out how the event time of a query is made of those of its inputs.

    Args:
        plan: Analysed; the event time is among its columns.
        inputs: Vocabularies of the inputs by alias, each registered as a view of that name.
        vocabulary: Of the output.

    Returns:
        For each way on which it comes from an input, what it is cut down to; None where it is another value.
    """
    time = next(each for each in items(plan.output()) if str(each.name()) == vocabulary.event_time)
    try:
        return _of_column(_Search(inputs, defined_tables(plan, inputs)), plan, time)
    except _ComputedError:
        return None


def _of_column(search: _Search, node: Any, column: Any) -> frozenset[Units]:
    """Follow one of the columns of a plan."""
    name, view = simple_name(node), view_name(node)
    if view in search.inputs:
        if str(column.name()) != search.inputs[str(view)].event_time:
            raise _ComputedError
        return frozenset({()})
    match name:
        case "Union":
            place = _position(node, column)
            found = [_of_column(search, each, items(each.output())[place]) for each in items(node.children())]
            return frozenset().union(*found)
        case "Intersect" | "Except":
            left = node.left()
            return _of_column(search, left, items(left.output())[_position(node, column)])
        case "CTERelationRef" | "View":
            below = search.tables[int(node.cteId())] if name == "CTERelationRef" else node.child()
            return _of_column(search, below, items(below.output())[_position(node, column)])
        case "WithCTE":
            return _of_column(search, node.plan(), column)
        case "Project" | "Aggregate":
            made = items(node.projectList() if name == "Project" else node.aggregateExpressions())
            expression = next(each for each in made if _is_same(each, column))
            return _of_expression(search, node, expression)
        case "Join":
            return _of_child(search, node, column)
        case _ if name in _PASSING:
            return _of_child(search, node, column)
    raise _ComputedError


def _of_child(search: _Search, node: Any, column: Any) -> frozenset[Units]:
    for child in operands_of(node):
        if any(_is_same(each, column) for each in items(child.output())):
            return _of_column(search, child, column)
    raise _ComputedError


def _of_expression(search: _Search, node: Any, expression: Any) -> frozenset[Units]:
    """Follow an expression over the columns of what is below a node."""
    search.looked_at += 1
    if search.looked_at > _MAX_EXPRESSIONS:
        raise _ComputedError
    if is_replaced(expression):
        return _of_expression(search, node, expression.replacement())
    match simple_name(expression):
        case "AttributeReference":
            return _of_child(search, node, expression)
        case "Alias":
            return _of_expression(search, node, expression.child())
        case "AggregateExpression" if simple_name(expression.aggregateFunction()) == "Max":
            return _of_expression(search, node, expression.aggregateFunction().child())
        case "Cast" if _kind(expression) in _TIMES and _kind(expression.child()) in _TIMES:
            found = _of_expression(search, node, expression.child())
            return _cut_down(found, "DAY") if _kind(expression) == "date" else found
        case "TruncTimestamp":
            return _cut_down(_of_expression(search, node, expression.timestamp()), _unit_of(expression.format()))
        case "TruncDate":
            return _cut_down(_of_expression(search, node, expression.date()), _unit_of(expression.format()))
        case "Greatest":
            return _of_greatest(search, node, operands_of(expression))
        case "Coalesce":
            # A literal stands in where there is no row, as for a total over none.
            values = [each for each in operands_of(expression) if simple_name(each) != "Literal"]
            if values:
                return frozenset().union(*(_of_expression(search, node, each) for each in values))
    raise _ComputedError


def _of_greatest(search: _Search, node: Any, values: Sequence[Any]) -> frozenset[Units]:
    """Follow those values that can be followed: the greatest is at or above each of them."""
    found: set[Units] = set()
    for each in values:
        try:
            found |= _of_expression(search, node, each)
        except _ComputedError:
            continue
    if not found:
        raise _ComputedError
    return frozenset(found)


def _cut_down(found: frozenset[Units], unit: str) -> frozenset[Units]:
    return frozenset((*units, unit) for units in found)


def _unit_of(expression: Any) -> str:
    if simple_name(expression) != "Literal" or not (text := str(expression.value())).isalpha():
        raise _ComputedError
    return text.upper()


def _position(node: Any, column: Any) -> int:
    return next(place for place, each in enumerate(items(node.output())) if _is_same(each, column))


def _is_same(one: Any, other: Any) -> bool:
    named = {"Alias", "AttributeReference"}
    return simple_name(one) in named and simple_name(other) in named and bool(one.exprId().equals(other.exprId()))


def _kind(expression: Any) -> str:
    return str(expression.dataType().typeName())
