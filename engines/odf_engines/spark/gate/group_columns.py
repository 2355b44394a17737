"""By which columns of its one input a query groups: rows that differ in them are never in one group.

So a step changes only groups that share these values with a row that it brings, and need not look at others.

Source: clause VIEW-13 in ``spec/extensions/maintained-views.md``.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from odf_engines.spark.gate.trees import items, iter_plan, simple_name, view_name

__all__ = ["GroupColumns", "find_group_columns"]

_PLANS = frozenset({"Aggregate", "Filter", "PipeOperator", "Project", "SubqueryAlias", "View"})
"""Lists and filters below and above one GROUP BY: each row above it is of one group, each below it of one row."""


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """Columns of the one input that a query reads, in which the rows of each group are alike."""

    alias: str
    names: tuple[str, ...]


def find_group_columns(plan: Any, inputs: Collection[str]) -> GroupColumns | None:
    """Find columns of an input by which an analysed query groups; None where there are none, or groups may mix them.

    Args:
        plan: Analysed, over views that have the data columns of the inputs alone.
        inputs: Their names.
    """
    nodes = list(iter_plan(plan, inputs))
    aggregates = [each for each in nodes if simple_name(each) == "Aggregate"]
    reads = [each for each in nodes if view_name(each) in inputs]
    if len(aggregates) != 1 or len(reads) != 1 or any(simple_name(each) not in _PLANS for each in nodes):
        return None
    columns = [each for each in items(aggregates[0].groupingExpressions()) if simple_name(each) == "AttributeReference"]
    below = aggregates[0].child()
    while view_name(below) not in inputs:
        if simple_name(below) == "Project":
            sources = {_number(each): _source_of(each) for each in items(below.projectList())}
        elif simple_name(below) == "View":
            inner = items(below.child().output())
            sources = {_number(each): inner[place] for place, each in enumerate(items(below.output()))}
        else:
            sources = {_number(each): each for each in columns}
        columns = [found for each in columns if (found := sources.get(_number(each))) is not None]
        below = below.child()
    given = {_number(each): str(each.name()) for each in items(below.output())}
    names = tuple(dict.fromkeys(given[_number(each)] for each in columns))
    return GroupColumns(str(view_name(below)), names) if names else None


def _number(column: Any) -> int:
    return int(column.exprId().id())


def _source_of(expression: Any) -> Any:
    inner = expression.child() if simple_name(expression) == "Alias" else expression
    return inner if simple_name(inner) == "AttributeReference" else None
