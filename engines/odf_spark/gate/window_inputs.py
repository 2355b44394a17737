"""What a window in event time waits for: the inputs below it, and by how much later, or older, rows of each may count.

From the time that is cut, down to the inputs: through lists, filters, groups and sets, which keep it as it is; through
a join to the other side as well, if the join says up to when rows of that side can be partners. An input that is
reached on no such way could change a window at any time, so no watermark closes it.

Source: clause WINDOW-9 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.map_class import SUBQUERIES
from odf_spark.gate.temporal_joins import find_asked_times
from odf_spark.gate.trees import is_replaced, items, iter_expression, iter_plan, simple_name, view_name

_PASSING = frozenset({"Distinct", "Filter", "Generate", "PipeOperator", "SubqueryAlias"})
_SETS = frozenset({"Except", "Intersect", "Union"})
_OWN_SIDES = {
    "Cross": (0, 1),
    "Inner": (0, 1),
    "LeftAnti": (0,),
    "LeftOuter": (0,),
    "LeftSemi": (0,),
    "RightOuter": (1,),
}
"""Sides of a join that the time may come from."""
_AT_OR_BELOW = frozenset({"EqualTo", "LessThan", "LessThanOrEqual"})
_AT_OR_ABOVE = frozenset({"EqualTo", "GreaterThan", "GreaterThanOrEqual"})
_MIRRORED = {
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
}


class UnboundedError(Exception):
    """A row that comes later could change a window at any time; the text says which node lets it."""


@dataclass(frozen=True, slots=True)
class InputBelow:
    """An input below a window.

    Attributes:
        delay_us: By so much its watermark has to be above the end of a window, before it closes that.
        is_cut: Whether the time that is cut is that of its own rows; else they are joined with rows of that time.
        is_version: Whether it is a temporal table, of which that time says what is in force.
        behind_us: No row that is older than the time that is cut by more than this is joined with it; None: any may be.
    """

    delay_us: int
    is_cut: bool
    is_version: bool = False
    behind_us: int | None = None


@dataclass(frozen=True, slots=True)
class _Condition:
    """One of several that hold together, and expressions that it names."""

    says: Any
    named: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Search:
    inputs: Mapping[str, Vocabulary]
    tables: Mapping[int, Any]  # plans that the query defines (WITH)


def find_inputs_below(plan: Any, cut: Any, time: Any, inputs: Mapping[str, Vocabulary]) -> dict[str, InputBelow]:
    """Find what a window waits for.

    Args:
        plan: Of the whole query, analysed.
        cut: The node of it that cuts the time.
        time: The column that is cut.
        inputs: Vocabularies of the inputs by alias.

    Raises:
        UnboundedError: No watermark could close a window.
    """
    tables = defined_tables(plan, inputs)
    found: dict[str, InputBelow] = {}
    for alias, below in _walk(_Search(inputs, tables), items(cut.children())[0], time, ()):
        known = found.get(alias, below)
        found[alias] = InputBelow(
            max(known.delay_us, below.delay_us),
            known.is_cut and below.is_cut,
            known.is_version and below.is_version,
            None if known.behind_us is None or below.behind_us is None else max(known.behind_us, below.behind_us),
        )
    return found


def defined_tables(plan: Any, inputs: Collection[str]) -> dict[int, Any]:
    """Return the plans that a query defines (WITH), by Spark's numbers of them."""
    return {
        int(each.id()): each.child()
        for node in iter_plan(plan, inputs)
        if simple_name(node) == "WithCTE"
        for each in items(node.cteDefs())
    }


def _walk(search: _Search, node: Any, time: Any, kept: Sequence[_Condition]) -> Iterator[tuple[str, InputBelow]]:
    """Yield the inputs below a node.

    Args:
        search: What stays the same.
        node: Has ``time`` among its columns.
        time: The time that is cut, as it is called there.
        kept: Conditions that hold for every row that gets from here to the window.
    """
    name, view = simple_name(node), view_name(node)
    if any(simple_name(each) in SUBQUERIES for top in items(node.expressions()) for each in iter_expression(top)):
        raise UnboundedError("a subquery")
    if view in search.inputs:
        if str(time.name()) != search.inputs[str(view)].event_time:
            raise UnboundedError(f"another time than the event time of {view}")
        yield str(view), InputBelow(0, is_cut=True, behind_us=0)
    elif name == "Join":
        yield from _walk_join(search, node, time, kept)
    elif name in _SETS:
        position = _position(node, time)
        for child in items(node.children()):
            yield from _walk(search, child, items(child.output())[position], ())
    elif name == "CTERelationRef":
        table = search.tables[int(node.cteId())]
        yield from _walk(search, table, items(table.output())[_position(node, time)], ())
    elif name == "WithCTE":
        yield from _walk(search, node.plan(), time, kept)
    elif name == "View":
        child = node.child()
        yield from _walk(search, child, items(child.output())[_position(node, time)], ())
    elif name in {"Project", "Aggregate"}:
        if name == "Aggregate" and not _is_grouped(node, time):
            raise UnboundedError("a group")
        made = items(node.projectList() if name == "Project" else node.aggregateExpressions())
        yield from _walk(search, node.child(), _source_of(made, time), kept)
    elif name in _PASSING:
        more = (*kept, *_conjuncts(node.condition())) if name == "Filter" else kept
        yield from _walk(search, node.child(), time, more)
    else:
        raise UnboundedError(name)


def _walk_join(search: _Search, node: Any, time: Any, kept: Sequence[_Condition]) -> Iterator[tuple[str, InputBelow]]:
    sides = (node.left(), node.right())
    kind = simple_name(node.joinType())
    own = next((side for side in _OWN_SIDES.get(kind, ()) if _has(sides[side], time)), None)
    if own is None:
        raise UnboundedError(f"{node.joinType().sql()} JOIN")
    condition = node.condition()
    conditions = [
        *(_conjuncts(condition.get()) if condition.isDefined() else ()),
        *(kept if kind in {"Cross", "Inner"} else ()),
    ]
    yield from _walk(search, sides[own], time, kept)
    other = sides[1 - own]
    asked = find_asked_times(node)
    if asked:
        if not all(_is_same(each, time) for each in asked):
            raise UnboundedError("a join as of another time than the one that is cut")
        for table in (each for each in iter_plan(other, search.inputs) if view_name(each) in search.inputs):
            yield str(view_name(table)), InputBelow(0, is_cut=False, is_version=True)
        return
    names = {simple_name(each) if view_name(each) not in search.inputs else "" for each in iter_plan(other)}
    if not names & {"", "CTERelationRef"}:
        return  # rows that stand in the query itself
    bounds = [bound for each in conditions for bound in _iter_bounds(each, time) if _has(other, bound.column)]
    ends = [(each.column, each.shift_us) for each in bounds if each.is_upper]
    for partner, delay_us in ends:
        try:
            below = [*_walk(search, other, partner, ())]
        except UnboundedError:
            continue  # another condition may be about the event time itself
        begins = [-each.shift_us for each in bounds if not each.is_upper and _is_same(each.column, partner)]
        for alias, each in below:
            behind = None if each.behind_us is None or not begins else max(0, each.behind_us + min(begins))
            yield alias, InputBelow(max(0, each.delay_us + delay_us), is_cut=False, behind_us=behind)
        return
    raise UnboundedError(f"a {node.joinType().sql()} JOIN that does not say up to when rows can be partners")


def _conjuncts(condition: Any, named: Mapping[str, Any] | None = None) -> Iterator[_Condition]:
    """Yield what a condition says all of, however BETWEEN is written."""
    while is_replaced(condition):
        condition = condition.replacement()
    if simple_name(condition) == "With":
        named = {str(each.id().toString()): each.child() for each in items(condition.defs())}
        yield from _conjuncts(condition.child(), named)
    elif simple_name(condition) == "And":
        for child in items(condition.children()):
            yield from _conjuncts(child, named)
    else:
        yield _Condition(condition, named or {})


@dataclass(frozen=True, slots=True)
class _Bound:
    """A column that is at or below the time and a shift (``is_upper``), or at or above it."""

    column: Any
    shift_us: int
    is_upper: bool


def _iter_bounds(condition: _Condition, time: Any) -> Iterator[_Bound]:
    """Yield the bounds of columns that a condition states by the time."""
    kind = simple_name(condition.says)
    if kind not in {"EqualTo", *_MIRRORED}:
        return
    left, right = (_shifted(each, condition.named) for each in items(condition.says.children()))
    if left is None or right is None:
        return
    for compared, column, other in ((kind, left, right), (_MIRRORED.get(kind, kind), right, left)):
        if _is_same(other[0], time):
            for is_upper, kinds in ((True, _AT_OR_BELOW), (False, _AT_OR_ABOVE)):
                if compared in kinds:
                    yield _Bound(column[0], other[1] - column[1], is_upper)


def _shifted(expression: Any, named: Mapping[str, Any]) -> tuple[Any, int] | None:
    """Return a column and the microseconds that are added to it; None for another expression."""
    shift = 0
    while True:
        match simple_name(expression):
            case "AttributeReference":
                return expression, shift
            case "CommonExpressionRef":
                expression = named[str(expression.id().toString())]
            case "Cast" if _kind(expression) == "timestamp" and _kind(expression.child()) in _MOVED_BY_NO_CAST:
                expression = expression.child()
            case "TimestampAddInterval":
                time, interval = items(expression.children())
                if not interval.foldable() or _kind(interval) not in _INTERVALS:
                    return None
                shift += int(interval.eval(None))
                expression = time
            case _ if is_replaced(expression):
                expression = expression.replacement()
            case _:
                return None


_UNITS = ("day", "hour", "minute", "second")
_INTERVALS = frozenset(
    f"interval {first} to {last}" if first != last else f"interval {first}" for first in _UNITS for last in _UNITS
)  # those of months have no fixed length
_MOVED_BY_NO_CAST = frozenset({"date", "timestamp", "timestamp_ntz"})


def _kind(expression: Any) -> str:
    return str(expression.dataType().typeName())


def _source_of(made: Sequence[Any], column: Any) -> Any:
    """Return the column that an item of a list passes on.

    Raises:
        UnboundedError: It computes another value.
    """
    for each in made:
        if not _is_same(each, column):
            continue
        inner = each.child() if simple_name(each) == "Alias" else each
        if simple_name(inner) == "Cast" and _kind(inner.child()) in _MOVED_BY_NO_CAST and _kind(inner) == "timestamp":
            inner = inner.child()
        if simple_name(inner) == "AttributeReference":
            return inner
    raise UnboundedError("a time that is computed")


def _is_grouped(node: Any, time: Any) -> bool:
    source = _source_of(items(node.aggregateExpressions()), time)
    return any(_is_same(each, source) for each in items(node.groupingExpressions()) if _is_named(each))


def _position(node: Any, column: Any) -> int:
    return next(place for place, each in enumerate(items(node.output())) if _is_same(each, column))


def _has(node: Any, column: Any) -> bool:
    return any(_is_same(each, column) for each in items(node.output()))


def _is_named(expression: Any) -> bool:
    return simple_name(expression) in {"Alias", "AttributeReference"}


def _is_same(one: Any, other: Any) -> bool:
    return _is_named(one) and _is_named(other) and bool(one.exprId().equals(other.exprId()))
