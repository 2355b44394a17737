"""An order for the rows of a result whose query gives none.

* A query that only passes the rows of one ordered input on, row by row, keeps that input's order.
* Under an ORDER BY, rows that are equal in it are ordered by all other columns that the ORDER BY sees.
* Any other result is ordered by all its columns, from left to right, nulls first.

Columns of maps cannot be ordered and are passed over.

Source: clause ENGINE-17 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Collection
from typing import Any

from pyspark.sql import DataFrame

from odf_engines.spark.gate.trees import items, iter_expressions, iter_plan, simple_name, view_name
from odf_engines.spark.java_classes import java_class, scala_object, scala_sequence
from odf_engines.spark.plans import analysed_plan, rows_of_plan

_ROW_BY_ROW_NAMES = """
    CTERelationDef CTERelationRef Filter Generate GlobalLimit LocalLimit LocalRelation Offset OneRowRelation
    PipeOperator Project SubqueryAlias View WithCTE
"""
_ROW_BY_ROW = frozenset(_ROW_BY_ROW_NAMES.split())
_RELATIONS = frozenset({"LocalRelation", "OneRowRelation", "View"})
_ABOVE_SORT = frozenset({"GlobalLimit", "LocalLimit", "Offset", "PipeOperator", "Project", "SubqueryAlias", "WithCTE"})
_SUBQUERIES = frozenset(
    {"DynamicPruningSubquery", "Exists", "InSubquery", "LateralSubquery", "ListQuery", "ScalarSubquery"}
)


def in_canonical_order(result: DataFrame, ordered: Collection[str], unordered: Collection[str] = ()) -> DataFrame:
    """Return a result whose rows have one order only.

    Args:
        result: Of a query that passed the gate.
        ordered: Views whose rows come in an order of their own.
        unordered: Views that are computed, and have none.
    """
    plan = analysed_plan(result)
    if _keeps_order(plan, ordered, unordered):
        return result
    mended = _with_ties_ordered(plan)
    if mended is None:
        order = [_ascending(column) for column in items(plan.output()) if _is_orderable(column)]
        mended = _sorted(order, plan)
    return rows_of_plan(result.sparkSession, mended)


def _keeps_order(plan: Any, ordered: Collection[str], unordered: Collection[str]) -> bool:
    relations = 0
    for node in iter_plan(plan, {*ordered, *unordered}):
        name = simple_name(node)
        if name not in _ROW_BY_ROW or view_name(node) in unordered:
            return False
        # A view that is no input is an earlier step: its plan is looked at as well.
        relations += name in _RELATIONS and (name != "View" or view_name(node) in ordered)
        if any(simple_name(each) in _SUBQUERIES for each in iter_expressions(node)):
            return False
    return relations <= 1


def _with_ties_ordered(plan: Any) -> Any:
    """Return a plan whose outermost ORDER BY goes on with all columns it sees, None where there is no such."""
    if simple_name(plan) == "Sort":
        child = plan.child()
        order = [*items(plan.order()), *(_ascending(each) for each in items(child.output()) if _is_orderable(each))]
        return _sorted(order, child)
    if simple_name(plan) not in _ABOVE_SORT:
        return None
    # Of a query with named tables the last child is the query.
    *others, last = items(plan.children())
    below = _with_ties_ordered(last)
    return None if below is None else plan.withNewChildren(scala_sequence([*others, below]))


def _sorted(order: list[Any], child: Any) -> Any:
    none = java_class("scala.Option").empty()
    return java_class("org.apache.spark.sql.catalyst.plans.logical.Sort")(scala_sequence(order), True, child, none)


def _ascending(column: Any) -> Any:
    expressions = "org.apache.spark.sql.catalyst.expressions"
    ascending, nulls_first = scala_object(f"{expressions}.Ascending$"), scala_object(f"{expressions}.NullsFirst$")
    return java_class(f"{expressions}.SortOrder")(column, ascending, nulls_first, scala_sequence([]))


def _is_orderable(column: Any) -> bool:
    kinds = java_class("org.apache.spark.sql.catalyst.expressions.RowOrdering")
    return bool(kinds.isOrderable(column.dataType()))
