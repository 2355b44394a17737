"""Which parts of an analysed query depend on the order in which rows are met.

Their result is exact only in one fixed order of execution: one ordered partition, nothing spilled and merged, which is
how this engine runs every query (ENGINE-18). So they pin a query to the engine's digest; the few that not even that
makes repeatable are rejected.

Source: clauses ENGINE-7, GATE-11 and GATE-12 in ``spec/extensions/engine-contract.md``; measured: the same queries
over 4 million rows under six settings.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from odf_engines.contract import Finding
from odf_engines.errors import NotReproducibleError
from odf_spark.gate.trees import (
    expressions_of,
    is_replaced,
    items,
    iter_expression,
    iter_plan,
    operands_of,
    shown,
    simple_name,
)

_FLOATS = ("it adds floating-point numbers, and another order gives other last digits", "sums and averages of DECIMAL")
_SIGNED_ZERO = ("0.0 and -0.0 are equal, so the one that is met first wins", "the same over DECIMAL")
_OVERFLOW = (
    "whether a sum overflows on the way depends on the order of rows",
    "TRY_CAST(sum(CAST(column AS DECIMAL(38, 0))) AS BIGINT)",
)
_MET = "it depends on the order in which rows are met"
_CUT = "which rows come first is not fixed by the query"

_EXACT_NAMES = """
    ApproxCountDistinctForIntervals BitAndAgg BitOrAgg BitXorAgg BoolAnd BoolOr Count CountIf HyperLogLogPlusPlus Max
    Median Min Percentile PercentileCont PercentileDisc PivotFirst RegrCount
"""
_EXACT = frozenset(_EXACT_NAMES.split())
_ORDERED_VALUES = frozenset({"Max", "Min", "Median", "Percentile", "PercentileCont", "PercentileDisc"})
_SUMS = frozenset({"Sum", "Average"})
_MOMENT_NAMES = """
    CentralMomentAgg Corr CovPopulation CovSample Kurtosis RegrIntercept RegrR2 RegrReplacement RegrSXX RegrSXY RegrSYY
    RegrSlope Skewness StddevPop StddevSamp VariancePop VarianceSamp
"""
_MOMENTS = frozenset(_MOMENT_NAMES.split())
_REWRITES = {
    "AnyValue": "min(column)",
    "ApproximatePercentile": "percentile(column, fraction)",
    "CollectList": "sort_array(collect_list(column))",
    "CollectSet": "sort_array(collect_set(column))",
    "First": "min(column), or min_by(column, key) with a key that is never equal",
    "HistogramNumeric": "count(*) GROUP BY width_bucket(...)",
    "Last": "max(column), or max_by(column, key) with a key that is never equal",
    "ListAgg": "array_join(sort_array(collect_list(column)), ',')",
    "MaxBy": "max(struct(key, column)).column",
    "MinBy": "min(struct(key, column)).column",
    "Mode": "max(struct(n, column)).column over count(*) AS n GROUP BY column",
}
# What does not mind the order of a list's items.
_UNORDERED_USE = frozenset({"ArrayContains", "ArrayMax", "ArrayMin", "ArraySize", "Size", "SortArray"})

_BY_POSITION = frozenset({"Lag", "Lead", "NTile", "NthValue", "RowNumber"})
_BELOW_LIMIT = frozenset({"GlobalLimit", "LocalLimit", "Offset", "PipeOperator", "Project", "SubqueryAlias"})


def find_order_dependence(plan: Any, inputs: Collection[str]) -> tuple[Finding, ...]:
    """Look through every plan of an analysed query.

    Args:
        plan: Analysed.
        inputs: Names of the views that are inputs; what they are made of is ours.

    Returns:
        What is exact only in a fixed order, each once.

    Raises:
        NotReproducibleError: Rows taken at random, an order that depends on the sizes of files, or sums that may
            overflow on the way to a result.
    """
    found: dict[str, Finding] = {}
    for node in iter_plan(plan, inputs):
        for finding in _findings_of(node):
            found.setdefault(finding.expression, finding)
    return tuple(found.values())


def _findings_of(node: Any) -> Iterator[Finding]:
    match simple_name(node):
        case "Sample":
            raise NotReproducibleError(
                "TABLESAMPLE", "every run takes other rows", "WHERE pmod(xxhash64(key), 100) < percent"
            )
        case "Join":
            _check_join(node)
        case "AsOfJoin":
            yield Finding(expression="ASOF JOIN", reason=_MET, rewrite="a join with a window over unique times")
        case "GlobalLimit" | "Offset" as name:
            if not _has_total_order(node.child()):
                expression = "LIMIT" if name == "GlobalLimit" else "OFFSET"
                rewrite = f"ORDER BY columns that make every row unique, before {expression}"
                yield Finding(expression=expression, reason=_CUT, rewrite=rewrite)
        case "Window":
            yield from _in_window(node)
            return
    for expression in expressions_of(node):
        yield from _in_expression(expression)


def _check_join(node: Any) -> None:
    """Reject the one join whose row order follows from the sizes of its sides: which is read first is the smaller."""
    condition = node.condition()
    if simple_name(node.joinType()) != "FullOuter":
        return
    if condition.isDefined() and any(
        simple_name(each) in ("EqualTo", "EqualNullSafe") for each in iter_expression(condition.get())
    ):
        return
    raise NotReproducibleError(
        "FULL OUTER JOIN", "without an equality its order follows from the sizes of files", "a condition with ="
    )


def _in_expression(expression: Any) -> Iterator[Finding]:
    """Look for aggregates in an expression; ``waiting`` has each with what uses its result."""
    waiting = [(expression, "")]
    while waiting:
        node, user = waiting.pop()
        name = simple_name(node)
        if name == "AggregateExpression":
            finding = _of_aggregate(node.aggregateFunction(), shown(node), user)
            if finding is not None:
                yield finding
            name = user
        waiting += [(child, name) for child in operands_of(node)]


def _of_aggregate(function: Any, text: str, user: str) -> Finding | None:
    while is_replaced(function):
        function = function.replacement()
    name = simple_name(function)
    has_floats = any(_holds_float(child.dataType()) for child in operands_of(function)[:1])
    if name in _SUMS and not _adds_floats(function, name) and _gives_null_for_overflow(function, name):
        # No order helps: Spark adds up whole numbers in any.
        raise NotReproducibleError(text, *_OVERFLOW)
    if name in ("CollectList", "CollectSet") and user in _UNORDERED_USE and not has_floats:
        return None
    if name in _MOMENTS or (name in _SUMS and _adds_floats(function, name)):
        reason, rewrite = _FLOATS
    elif name in _ORDERED_VALUES and has_floats:
        reason, rewrite = _SIGNED_ZERO
    elif name in _EXACT or name in _SUMS:
        return None
    else:
        reason, rewrite = _MET, _REWRITES.get(name, "an aggregate that does not mind the order, such as max")
    return Finding(expression=text, reason=reason, rewrite=rewrite)


def _gives_null_for_overflow(function: Any, name: str) -> bool:
    mode = function.evalContext().evalMode() if name == "Sum" else function.evalMode()
    return str(mode.toString()) == "TRY"


def _adds_floats(function: Any, name: str) -> bool:
    kind = str(operands_of(function)[0].dataType().typeName())
    if kind.startswith("decimal") or "interval" in kind:
        return False
    # An average of whole numbers is made of a sum of doubles, which is exact only up to 2^53.
    return name == "Average" or kind in ("float", "double")


def _in_window(node: Any) -> Iterator[Finding]:
    for expression in items(node.windowExpressions()):
        for each in iter_expression(expression):
            if simple_name(each) != "WindowExpression":
                continue
            function, definition = each.windowFunction(), each.windowSpec()
            name = simple_name(function)
            is_aggregate = name == "AggregateExpression"
            if is_aggregate:
                inner = function.aggregateFunction()
                finding = _of_aggregate(inner, shown(function), "")
                if finding is not None:
                    yield finding
                    continue
                name = simple_name(inner)
            if name in _BY_POSITION or (is_aggregate and _cuts_between_rows(definition.frameSpecification())):
                keys = [*items(definition.partitionSpec()), *items(definition.orderSpec())]
                if not _covers(keys, node.child()):
                    yield Finding(
                        expression=shown(function),
                        reason="rows that are equal in its ORDER BY have no order",
                        rewrite="ORDER BY columns that make every row unique, or rank()",
                    )


def _cuts_between_rows(frame: Any) -> bool:
    """Whether a frame can have one of two rows that are equal in the ORDER BY and not the other."""
    if simple_name(frame) != "SpecifiedWindowFrame" or simple_name(frame.frameType()) != "RowFrame":
        return False
    return (simple_name(frame.lower()), simple_name(frame.upper())) != ("UnboundedPreceding", "UnboundedFollowing")


def _has_total_order(plan: Any) -> bool:
    """Whether rows come sorted so that only equal rows can change places."""
    while simple_name(plan) in _BELOW_LIMIT:
        plan = plan.child()
    return simple_name(plan) == "Sort" and _covers(items(plan.order()), plan.child())


def _covers(keys: Iterable[Any], child: Any) -> bool:
    """Whether keys name every column of a plan, none of which has different values that compare as equal."""
    named = set()
    for key in keys:
        column = key.child() if simple_name(key) == "SortOrder" else key
        if simple_name(column) == "AttributeReference":
            named.add(int(column.exprId().id()))
    return all(
        int(column.exprId().id()) in named and not _holds_float(column.dataType()) for column in items(child.output())
    )


def _holds_float(kind: Any) -> bool:
    text = str(kind.catalogString())
    return "float" in text or "double" in text
