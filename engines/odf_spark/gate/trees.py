"""Walking Spark's trees of plans and expressions from Python.

A tree node is a Java object behind a pipe: every question costs a fraction of a millisecond, so a walk asks each node
only for its class and its children. Spark never changes these of a node, so a node that was asked knows them, and a
second walk over the same tree asks nothing.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from odf_spark.java_side import is_java_instance

_SHOWN_CHARACTERS = 160  # guess: enough to find the place in a query
_REPLACED = "org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable"
_known_replaced: dict[str, bool] = {}


def items(sequence: Any) -> list[Any]:
    """Return the members of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]


def class_name(node: Any) -> str:
    """Return the full name of a node's class."""
    return str(_asked_once(node, "class", lambda: str(node.getClass().getName())))


def simple_name(node: Any) -> str:
    """Return the last part of a node's class name."""
    return class_name(node).rsplit(".", 1)[-1].removesuffix("$")


def view_name(node: Any) -> str | None:
    """Return the name of the view that a plan node stands for, None for any other node."""
    return str(node.desc().identifier().table()) if simple_name(node) == "View" else None


def iter_plan(plan: Any, leaves: Collection[str] = ()) -> Iterator[Any]:
    """Yield a plan and all plans in it from the top, with common table expressions and plans inside expressions.

    Args:
        plan: Parsed or analysed.
        leaves: Names of views that are yielded but not entered.
    """
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        if leaves and view_name(node) in leaves:
            continue
        waiting += reversed(children_of(node))


def children_of(plan: Any) -> list[Any]:
    """Return the plans right below one: common table expressions and plans inside expressions, then its children."""
    inner = _asked_once(plan, "inner children", lambda: items(plan.innerChildren()))
    return [*(each for each in reversed(inner) if _is_plan(each)), *operands_of(plan)]


def operands_of(node: Any) -> list[Any]:
    """Return the children of a node, of its own kind."""
    return list(_asked_once(node, "children", lambda: items(node.children())))


def expressions_of(plan: Any) -> list[Any]:
    """Return the expressions of one plan node, each the top of a tree."""
    return list(_asked_once(plan, "expressions", lambda: items(plan.expressions())))


def iter_expressions(plan: Any) -> Iterator[Any]:
    """Yield every expression of one plan node, not of its children, from the top of each tree."""
    for expression in expressions_of(plan):
        yield from iter_expression(expression)


def iter_expression(expression: Any) -> Iterator[Any]:
    """Yield an expression and all in it, also what Spark will run in place of a convenience function."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(operands_of(node))
        if is_replaced(node):
            waiting.append(_asked_once(node, "replacement", node.replacement))


def shown(node: Any) -> str:
    """Return a node as people know it from SQL, cut to a length, without Spark's numbers behind names."""
    try:
        text = str(node.sql())
    except Exception:  # noqa: BLE001 - not every node can be written as SQL, and this is only for a message
        text = str(node.toString())
    text = re.sub(r"#\d+L?", "", " ".join(text.split()))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def is_replaced(node: Any) -> bool:
    """Whether Spark will run something else in place of a node; asked once per class."""
    name = class_name(node)
    if name not in _known_replaced:
        _known_replaced[name] = is_java_instance(node, _REPLACED)
    return _known_replaced[name]


def leads_to(column: Any, given: Collection[int], made_of: Mapping[int, Any]) -> bool:
    """Whether a column is one of some others, under whatever names, and no value computed from them.

    Args:
        column: Of a plan.
        given: Spark's numbers of the others.
        made_of: What columns are made of, by their numbers.
    """
    seen: set[int] = set()
    while simple_name(column) in {"Alias", "AttributeReference"}:
        if simple_name(column) == "Alias":
            column = column.child()
            continue
        number = int(column.exprId().id())
        if number in given:
            return True
        if number in seen or number not in made_of:
            return False
        seen.add(number)
        column = made_of[number]
    return False


def _is_plan(node: Any) -> bool:
    name = class_name(node)
    return ".plans." in name or ".analysis." in name or ".execution." in name


def _asked_once(node: Any, what: str, ask: Callable[[], Any]) -> Any:
    """Return what a node was asked for before, and ask if it was not; known as long as the node is held."""
    known = vars(node).setdefault("asked before", {})  # no name that Java could have
    if what not in known:
        known[what] = ask()
    return known[what]


def number_of(column: Any) -> int:
    """Return the number by which Spark tells a column from others of its name."""
    return int(column.exprId().id())
