"""What an analysed query does with its rows, in words for people: one line an operator, from the inputs up.

Source: clauses ENGINE-7 and PLAN-16.
"""

from collections.abc import Collection, Iterator
from typing import Any

from odf_engines.contract import MAX_STAGES
from odf_spark.gate.trees import children_of, items, shown, simple_name, view_name

_WORDS = {
    "Deduplicate": "keeps each row once",
    "Distinct": "keeps each row once",
    "Except": "takes the rows of one side away from the other",
    "Expand": "repeats rows for each of the grouping sets",
    "Intersect": "keeps the rows that both sides have",
    "LocalRelation": "has rows of its own (VALUES)",
    "Union": "puts the rows of its sides together",
    "UnionLoop": "repeats a query over its own result (WITH RECURSIVE)",
}


def list_stages(plan: Any, inputs: Collection[str]) -> tuple[str, ...]:
    """Say what a plan does.

    Returns:
        At most ``MAX_STAGES`` lines, in an order in which rows could pass through.
    """
    waiting, nodes = [plan], []
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if view_name(node) not in inputs:
            waiting += children_of(node)
    lines = [line for node in reversed(nodes) for line in _describe(node, inputs)]
    if len(lines) > MAX_STAGES:
        lines[MAX_STAGES - 1 :] = [f"and {len(lines) - MAX_STAGES + 1} more"]
    return tuple(line.replace("\0", "") for line in lines)  # what is added inside has names that no query can write


def _describe(node: Any, inputs: Collection[str]) -> Iterator[str]:
    name = simple_name(node)
    match name:
        case "View":
            view = view_name(node)
            yield f"reads {view}" if view in inputs else f"that is step {view}"
        case "Filter":
            yield f"keeps rows where {shown(node.condition())}"
        case "Project":
            made = [str(each.name()) for each in items(node.projectList()) if _is_computed(each)]
            if made:
                yield f"computes {', '.join(made)}"
        case "Aggregate":
            groups = [shown(each) for each in items(node.groupingExpressions())]
            yield f"groups by {', '.join(groups)}" if groups else "makes one row of all"
        case "Join":
            condition = node.condition()
            kind = str(node.joinType().sql()).lower()
            yield f"joins ({kind}) on {shown(condition.get())}" if condition.isDefined() else f"joins ({kind})"
        case "Window":
            yield f"looks at other rows: {', '.join(shown(each) for each in items(node.windowExpressions()))}"
        case "GlobalLimit":
            yield f"keeps the first {shown(node.limitExpr())}"
        case "Sort":
            yield f"sorts by {', '.join(shown(each) for each in items(node.order()))}"
        case "Generate":
            yield f"unfolds {shown(node.generator())}"
        case _ if name in _WORDS:
            yield _WORDS[name]


def _is_computed(column: Any) -> bool:
    return simple_name(column) == "Alias" and simple_name(column.child()) != "AttributeReference"
