"""Executing in one fixed order: one ordered partition, and nothing that depends on how much memory there is.

A sum of floating-point numbers is the same wherever it is added up in the same order. Reading inputs as one ordered
partition and exchanging rows in one partition fixes that order, for any number of cores and any cut of files. Memory is
what remains: an aggregation or a sort that outgrows it writes parts to disk and merges them in another order. So
where the order matters, a query that spilled has no result but a limit.

A result whose query gives its rows no order gets one:

* A query that only passes the rows of one ordered input on, row by row, keeps that input's order.
* Under an ORDER BY, rows that are equal in it are ordered by all other columns that the ORDER BY sees.
* Any other result is ordered by all its columns, from left to right, nulls first.

Columns of maps cannot be ordered and are passed over.

Source: clauses ENGINE-17 and ENGINE-18 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from odf_engines.errors import LimitExceededError, NotReproducibleError
from odf_spark.gate.row_order import find_order_dependence
from odf_spark.gate.trees import items, iter_expressions, iter_plan, simple_name, view_name
from odf_spark.java_side import analysed_plan, java_class, java_context, rows_of_plan, scala_object, scala_sequence
from odf_spark.launch import ANY_ORDER, ONE_ORDER

_numbers = count()


def depends_on_order(result: Any, inputs: Collection[str]) -> bool:
    """Whether the result of a query over these views follows from its rows only in one fixed order of execution."""
    try:
        return bool(find_order_dependence(analysed_plan(result), inputs))
    except NotReproducibleError:
        return False  # a person may ask at random; no order would make the answer the same


@contextmanager
def in_one_order(spark: Any) -> Iterator[None]:
    """Plan what is planned inside in one fixed order, in a session whose own settings differ."""
    before = {name: spark.conf.get(name) for name in ONE_ORDER}
    _configure(spark, ONE_ORDER)
    try:
        yield
    finally:
        _configure(spark, before)


def allow_any_order(spark: Any) -> None:
    """Let a session compute what follows from no order of rows as Spark does by itself."""
    _configure(spark, ANY_ORDER)


def _configure(spark: Any, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)


@contextmanager
def unspilled(spark: Any, *, matters: bool) -> Iterator[None]:
    """Reject the result of what is executed inside if it did not fit into memory.

    Args:
        spark: Session.
        matters: Whether the query depends on the order of rows; if not, nothing is checked.

    Raises:
        LimitExceededError: Rows were spilled to disk.
    """
    if not matters:
        yield
        return
    group = f"fixed order {next(_numbers)}"
    spark.sparkContext.setJobGroup(group, group)
    try:
        yield
    finally:
        java_context(spark).clearJobGroup()
    spilled = _spilled_bytes(spark, group)
    if spilled:
        heap = int(java_class("java.lang.Runtime").getRuntime().maxMemory())
        raise LimitExceededError(
            "memory_bytes",
            allowed=heap,
            found=heap + spilled,
            where="a query whose result depends on the order of rows",
        )


def _spilled_bytes(spark: SparkSession, group: str) -> int:
    java = java_context(spark)
    # What tasks report arrives by a queue.
    java.listenerBus().waitUntilEmpty()
    tracker, store = spark.sparkContext.statusTracker(), java.statusStore()
    stages = {
        stage
        for job in tracker.getJobIdsForGroup(group)
        if (info := tracker.getJobInfo(job))
        for stage in info.stageIds
    }
    return sum(_spilled_in(store, stage) for stage in stages)


def _spilled_in(store: Any, stage: int) -> int:

    try:
        data = store.lastStageAttempt(stage)
    except Py4JJavaError:
        return 0  # it was skipped: its rows were there already
    return int(data.memoryBytesSpilled()) + int(data.diskBytesSpilled())


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
    fixed = _with_ties_ordered(plan)
    if fixed is None:
        order = [_ascending(column) for column in items(plan.output()) if _is_orderable(column)]
        fixed = _sorted(order, plan)
    return rows_of_plan(result.sparkSession, fixed)


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
