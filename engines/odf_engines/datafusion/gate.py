"""What a query may be, and what is to be said of its results: judged on the plan that DataFusion makes of it.

Source: clauses FUSION-3 to FUSION-7 in ``spec/extensions/engine-contract.md``.
"""

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from odf_engines.contract import Finding
from odf_engines.datafusion.functions import AGGREGATES, EXACT, PINNED
from odf_engines.errors import InvalidQueryError, NotReproducibleError

if TYPE_CHECKING:
    from datafusion import DataFrame

# What a query's plan is made of; EXPLAIN, DESCRIBE and what comes new is none of it.
_NODES: Final = frozenset(
    {"Aggregate", "Distinct", "EmptyRelation", "Filter", "Join", "Limit", "Projection", "RecursiveQuery", "Sort",
     "Subquery", "SubqueryAlias", "TableScan", "Union", "Unnest", "Values", "Window", "WindowExpr"}
)  # fmt: skip

# A set of values is walked in the order of a hash that is made anew in each process.
_OF_A_SET: Final = re.compile(r"\b(\w+)\(DISTINCT ")
_UNION: Final = re.compile(r"^\s*Union\b", re.MULTILINE)
_LINE: Final = re.compile(r"^\s*([^:\n]*)", re.MULTILINE)
# Whatever the order of rows below, these give the same bag of rows. Joins do, too.
_OF_BAGS: Final = frozenset(
    {"Aggregate", "Distinct", "EmptyRelation", "Filter", "Projection", "Sort", "Subquery", "SubqueryAlias",
     "TableScan", "Union", "Unnest", "Values"}
)  # fmt: skip
# Of values that are equal and differ in bits (0.0 and -0.0) these keep the first.
_KEEPS_FIRST: Final = frozenset({"max", "min"})
_CALL: Final = re.compile(r"\b([a-z_0-9]+)\(")

# How the text of a plan names its nodes, also those of subqueries, and what each makes of a step.
_OVER_ONE_STEP: Final = {
    "Aggregate": "groups and aggregates", "Distinct": "tells repeated rows", "WindowAggr": "looks at neighbours",
    "Join": "pairs rows", "Limit": "cuts rows off",
}  # fmt: skip
_NODE: Final = re.compile(r"^\s*(Aggregate|Distinct|WindowAggr|(?:\w+ )*Join|Limit|Sort|Filter)\b", re.MULTILINE)


def check_query(rows: "DataFrame") -> None:
    """Check that what was planned is a query.

    Raises:
        InvalidQueryError: It is none.
    """
    for kind in _kinds(rows.logical_plan()):
        if kind not in _NODES:
            raise InvalidQueryError(f"expected one query, found {kind.upper()}")


def check_plan(rows: "DataFrame") -> None:
    """Check that a step is a query whose result can be repeated.

    Raises:
        InvalidQueryError: It is no query.
        NotReproducibleError: Its result nobody could repeat.
    """
    check_query(rows)
    if has_union(rows):
        _check_bag(rows.logical_plan().display_indent())
    text = rows.logical_plan().display_indent()
    if found := [name for name in _OF_A_SET.findall(text) if name not in EXACT]:
        raise NotReproducibleError(
            f"{found[0]}(DISTINCT ...)",
            "its values come in an order that differs from run to run",
            "the same over rows that a step before made distinct (GROUP BY)",
        )


def has_union(rows: "DataFrame") -> bool:
    """Say whether rows come of several parts that run side by side, and so in an order that differs from run to run."""
    return _UNION.search(rows.logical_plan().display_indent()) is not None


def _check_bag(plan: str) -> None:
    """Check that a step with a UNION gives one bag of rows, in whatever order its parts come (FUSION-12).

    Raises:
        NotReproducibleError: Its rows, and not only their order, rest on the order of the parts.
    """
    nodes = [line[1].strip() for line in _LINE.finditer(plan)]
    other = next((each for each in nodes if each not in _OF_BAGS and not each.endswith("Join")), None)
    if other is None and "Aggregate" in nodes:
        of_order = (PINNED.keys() & AGGREGATES) | _KEEPS_FIRST
        other = next((found[1] for found in _CALL.finditer(plan) if found[1] in of_order), None)
    if other is not None:
        raise NotReproducibleError(
            f"{other[:80]} beside UNION",
            "the parts of a UNION run side by side, and what follows from the order of their rows differs from run to "
            "run",
            "a derivative that has the UNION alone, and another one over it",
        )


def find_limits(rows: "DataFrame", *, operations: Collection[str], op: str) -> tuple[Finding, ...]:
    """Say what pins a result, and what it does not promise to those who read it over time.

    Args:
        rows: Of the last step.
        operations: Names of the inputs' operation columns.
        op: Name of the output's.
    """
    text = rows.logical_plan().display_indent()
    findings = [
        Finding(expression=name, reason=PINNED[name], rewrite="nothing else: it repeats under one engine digest")
        for name in sorted({found[1] for found in _CALL.finditer(text)} & PINNED.keys())
    ]
    nodes = {found[1].split()[-1] for found in _NODE.finditer(text)}
    for node, does in _OVER_ONE_STEP.items():
        if node in nodes:
            reason = f"{does} among the new rows of one step only, never with those of earlier steps"
            findings.append(_stated(node, reason, "a question (sql), or an engine that keeps state"))
    if "Sort" in nodes and "Limit" not in nodes:
        findings.append(_stated("Sort", "does not order the rows of a slice", "no ORDER BY without a LIMIT"))
    if has_union(rows):
        reason = "its parts run side by side: others can prove which rows it gives, and not their order"
        findings.append(_stated("UNION", reason, "one derivative for each part"))
    if op not in rows.schema().names:
        reason = "operations are not passed on: retractions and corrections of the input become appends"
        findings.append(_stated("op", reason, f"select {', '.join(sorted(operations))} too"))
    elif "Filter" in nodes:
        reason = "a correction that moves a row across the condition loses its other half"
        findings.append(_stated("Filter", reason, "a condition over columns that corrections do not change"))
    return tuple(findings)


def _kinds(plan: Any) -> Iterator[str]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield type(node.to_variant()).__name__
        waiting += node.inputs()


def _stated(expression: str, reason: str, rewrite: str) -> Finding:
    return Finding(expression=expression, reason=reason, rewrite=rewrite)
