"""What a query may be, and what is to be said of its results: judged on the plan that DataFusion makes of it.

Source: clauses FUSION-3 to FUSION-7 in ``spec/extensions/engine-contract.md``.
"""

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from odf_engines.contract import Finding
from odf_engines.datafusion.functions import EXACT, PINNED
from odf_engines.errors import InvalidQueryError, NotReplayableError

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
        NotReplayableError: Its result nobody could repeat.
    """
    check_query(rows)
    if has_union(rows):
        raise NotReplayableError(
            "UNION",
            "its parts run side by side, and their rows come in an order that differs from run to run",
            "one derivative for each part",
        )
    text = rows.logical_plan().display_indent()
    if found := [name for name in _OF_A_SET.findall(text) if name not in EXACT]:
        raise NotReplayableError(
            f"{found[0]}(DISTINCT ...)",
            "its values come in an order that differs from run to run",
            "the same over rows that a step before made distinct (GROUP BY)",
        )


def has_union(rows: "DataFrame") -> bool:
    """Say whether rows come of several parts that run side by side, and so in an order that differs from run to run."""
    return _UNION.search(rows.logical_plan().display_indent()) is not None


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
            findings.append(_said(node, reason, "a question (sql), or an engine that keeps state"))
    if "Sort" in nodes and "Limit" not in nodes:
        findings.append(_said("Sort", "does not order the rows of a slice", "no ORDER BY without a LIMIT"))
    if op not in rows.schema().names:
        reason = "operations are not passed on: retractions and corrections of the input become appends"
        findings.append(_said("op", reason, f"select {', '.join(sorted(operations))} too"))
    elif "Filter" in nodes:
        reason = "a correction that moves a row across the condition loses its other half"
        findings.append(_said("Filter", reason, "a condition over columns that corrections do not change"))
    return tuple(findings)


def _kinds(plan: Any) -> Iterator[str]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield type(node.to_variant()).__name__
        waiting += node.inputs()


def _said(expression: str, reason: str, rewrite: str) -> Finding:
    return Finding(expression=expression, reason=reason, rewrite=rewrite)
