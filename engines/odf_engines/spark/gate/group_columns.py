"""In which columns of an input the rows are alike that one row of a result is made of.

Rows that differ in them never meet in a query, so a step changes only what is made of rows that are in these columns
like one that it brings, and need not look at others.

Source: clause VIEW-13 in ``spec/extensions/maintained-views.md``.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from odf_engines.spark.gate.trees import items, iter_plan, number_of, simple_name, view_name

_ROW_BY_ROW = frozenset({"Filter", "PipeOperator", "Sort", "SubqueryAlias", "WithCTE", "CTERelationDef"})
"""Plans whose rows are those below, under the same numbers of columns, and are there or not each by itself."""
_KEPT_SIDES = {
    "Inner": ("left", "right"), "Cross": ("left", "right"), "LeftOuter": ("left",), "RightOuter": ("right",),
    "LeftSemi": ("left",), "LeftAnti": ("left",), "ExistenceJoin": ("left",),
}  # fmt: skip
"""By the kind of a join its sides of which each row is joined, or is not, whatever other rows are on that side."""


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """What is known of an input that a query reads once.

    Attributes:
        names: Columns in which the rows are alike that meet.
        read: Columns that the query looks at.
    """

    names: tuple[str, ...]
    read: frozenset[str]


def find_group_columns(plan: Any, inputs: Collection[str]) -> dict[str, GroupColumns]:
    """Find what an analysed query groups each of its inputs by; inputs of which groups may mix any rows are left out.

    Args:
        plan: Analysed, over views that have the data columns of the inputs alone.
        inputs: Their names.
    """
    nodes = list(iter_plan(plan, inputs))
    reads = Counter(view_name(each) for each in nodes)
    tables = {int(each.id()): each.child() for each in nodes if simple_name(each) == "CTERelationDef"}
    uses = Counter(int(each.cteId()) for each in nodes if simple_name(each) == "CTERelationRef")
    once = {number: table for number, table in tables.items() if uses[number] == 1}
    looked_at = {int(each.exprId().id()) for node in nodes for each in _columns_read(node, is_last=node is plan)}
    found = {}
    for alias in inputs:
        view = None if reads[alias] != 1 else next(each for each in nodes if view_name(each) == alias)
        columns = None if view is None else _descend(plan, alias, None, once)
        if view is not None and columns:
            names = {number_of(each): str(each.name()) for each in items(view.output())}
            read = frozenset(name for number, name in names.items() if number in looked_at)
            found[alias] = GroupColumns(tuple(name for number, name in names.items() if number in columns), read)
    return found


def _columns_read(node: Any, *, is_last: bool) -> list[Any]:
    listed = items(node.references().toSeq())
    if is_last:
        listed += items(node.output())
    if simple_name(node) == "Distinct":
        listed += items(node.child().output())
    return listed


def _descend(node: Any, alias: str, columns: set[int] | None, once: Mapping[int, Any]) -> set[int] | None:
    """Follow columns of a plan down to the view of an input.

    Args:
        node: The plan.
        alias: Of the input, which is read in one place.
        columns: Numbers of columns of the plan in which rows are alike that meet above it; None where no rows do.
        once: Common table expressions that are used once, by their numbers.

    Returns:
        Numbers of columns of the input, None where it is not below, or where rows meet that are alike in none.
    """
    if columns is not None and not columns:
        return None
    below = None
    match simple_name(node):
        case "View" if view_name(node) == alias:
            return {number_of(each) for each in items(node.output())} if columns is None else columns
        case "View":
            below, columns = node.child(), _renamed(node, node.child(), columns)
        case "CTERelationRef" if int(node.cteId()) in once:
            below = once[int(node.cteId())]
            columns = _renamed(node, below, columns)
        case "Project":
            below, columns = node.child(), _passed_on(items(node.projectList()), columns)
        case "Aggregate":
            groups = _numbers(items(node.groupingExpressions()))
            passed = _passed_on(items(node.aggregateExpressions()), columns)
            below, columns = node.child(), groups if passed is None else groups & passed
        case "Window":
            parts = _numbers(items(node.partitionSpec()))
            below, columns = node.child(), parts if columns is None else parts & columns
        case "Distinct":
            listed = _numbers(items(node.output()))
            below, columns = node.child(), listed if columns is None else columns
        case "Join":
            sides = _KEPT_SIDES.get(simple_name(node.joinType()), ())
            found = (_descend(getattr(node, side)(), alias, _those_of(node, side, columns), once) for side in sides)
            return next((each for each in found if each), None)
        case "WithCTE":
            below = node.plan()
        case name if name in _ROW_BY_ROW:
            below = node.child()
    return None if below is None else _descend(below, alias, columns, once)


def _those_of(join: Any, side: str, columns: set[int] | None) -> set[int] | None:
    return None if columns is None else columns & _numbers(items(getattr(join, side)().output()))


def _renamed(outer: Any, inner: Any, columns: set[int] | None) -> set[int] | None:
    if columns is None:
        return None
    pairs = zip(items(outer.output()), items(inner.output()), strict=True)
    return {number_of(below) for above, below in pairs if number_of(above) in columns}


def _passed_on(listed: list[Any], columns: set[int] | None) -> set[int] | None:
    """Return what columns of a list are below it, as far as it passes them on."""
    if columns is None:
        return None
    sources = [each.child() if simple_name(each) == "Alias" else each for each in listed if number_of(each) in columns]
    return _numbers(sources)


def _numbers(expressions: list[Any]) -> set[int]:
    return {number_of(each) for each in expressions if simple_name(each) == "AttributeReference"}
