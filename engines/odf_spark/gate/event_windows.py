"""Windows in event time: the one window that a query groups by, and which of its ends the output's event time is.

Source: clauses WINDOW-1, WINDOW-2, WINDOW-8 and WINDOW-9 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odf_engines.errors import NotReproducibleError
from odf_protocol.vocabulary import Vocabulary
from odf_spark.gate.map_class import column_definitions
from odf_spark.gate.trees import (
    children_of,
    items,
    iter_expression,
    iter_plan,
    leads_to,
    number_of,
    shown,
    simple_name,
    view_name,
)
from odf_spark.gate.view_class import find_groups
from odf_spark.gate.window_inputs import InputBelow, UnboundedError, defined_tables, find_inputs_below
from odf_spark.java_side import java_class

_PLANS = frozenset(
    {
        "Aggregate",
        "CTERelationDef",
        "CTERelationRef",
        "Expand",
        "Filter",
        "PipeOperator",
        "Project",
        "SubqueryAlias",
        "View",
        "WithCTE",
    }
)
_MADE_BY_WINDOW = (
    "spark.timeWindow",
    "spark.sessionWindow",
)  # ``TimeWindow.marker``, ``SessionWindow.marker`` of Spark
_SESSION = "SELECT session_window.end AS event_time, ... FROM input GROUP BY session_window(event_time, '1 day'), ..."
_DAY_US = 86_400_000_000  # of Spark's sessions, whose time zone is UTC
_CORRECTED = (
    "GROUP BY date_trunc('DAY', event_time), which is corrected when rows come; or, of a join, a bound in event time: "
    "r.event_time BETWEEN o.event_time - INTERVAL 1 HOUR AND o.event_time"
)
_REWRITE = "SELECT window.start AS event_time, ... FROM input GROUP BY window(event_time, '1 day'), ..."


@dataclass(frozen=True, slots=True)
class EventWindow:
    """How a query cuts event time.

    Attributes:
        size_us: From the start of a window to its end.
        slide_us: From the start of a window to that of the next; a divisor of what lies between any two starts.
        start_us: Of any one window, since 1970.
        shows_end: Whether the output's event time is the end of the window; else it is its start.
        inputs: Those that it waits for, by alias.
    """

    size_us: int
    slide_us: int
    start_us: int
    shows_end: bool
    inputs: Mapping[str, InputBelow]


@dataclass(frozen=True, slots=True)
class EventSessions:
    """A query groups rows that follow each other without a gap; the output's event time is where the gap is known.

    Attributes:
        inputs: Those that it waits for, by alias.
        gap_us: From a row to the latest one that follows it in its session; None where that depends on the row.
    """

    inputs: Mapping[str, InputBelow]
    gap_us: int | None


def find_event_window(
    parsed: Collection[Any], plan: Any, inputs: Mapping[str, Vocabulary], vocabulary: Vocabulary
) -> EventWindow | EventSessions | None:
    """Find the window in event time that a query groups by; None where it has none.

    Args:
        parsed: Plans of all steps as they were parsed.
        plan: Of the last step, analysed.
        inputs: Vocabularies of the inputs by alias.
        vocabulary: Of the output.

    Raises:
        NotReproducibleError: A window that cannot be closed by a watermark.
    """
    calls = [
        call
        for each in parsed
        for node in iter_plan(each)
        for expression in items(node.expressions())
        for call in iter_expression(expression)
        if simple_name(call) == "UnresolvedFunction"
        and str(call.nameParts().last()).lower() in {"window", "session_window"}
    ]
    cuts = _find_cuts(plan, inputs) if calls else []
    if not any(each.is_event_time for each in cuts):
        return None
    has_sessions = str(calls[0].nameParts().last()).lower() == "session_window"
    # Where a session could end, Spark cuts another time: that of the row and the gap.
    if len({shown(call) for call in calls}) > 1 or not (has_sessions or all(each.is_event_time for each in cuts)):
        raise NotReproducibleError("several windows", "a query has one window in event time", _REWRITE)
    for name in _names_above(plan, cuts, inputs):
        if name not in _PLANS:
            reason = f"above a window in event time there are lists and filters, and no {name}"
            raise NotReproducibleError(shown(calls[0]), reason, "a derivative over this one for what stands above it")
    cut = next(each for each in cuts if each.is_event_time)
    try:
        below = find_inputs_below(plan, cut.node, cut.time, inputs)
    except UnboundedError as error:
        reason = f"below it is {error}, so no watermark says when a window is complete"
        raise NotReproducibleError(shown(calls[0]), reason, _CORRECTED) from error
    if has_sessions and not all(each.is_cut or each.is_version for each in below.values()):
        reason = "a session is over rows of inputs, not over rows that a join in event time makes"
        raise NotReproducibleError(shown(calls[0]), reason, _CORRECTED)
    end = _shown_end(plan, inputs, vocabulary)
    if has_sessions and end is not True:
        reason = f"when a session is over follows from its end, and the output's {vocabulary.event_time} is not that"
        raise NotReproducibleError(shown(calls[0]), reason, _SESSION)
    if has_sessions:
        return EventSessions(below, _find_gap(cuts))
    if end is None:
        reason = f"whether a row's window is closed follows from the output's {vocabulary.event_time}"
        raise NotReproducibleError(shown(calls[0]), f"{reason}, which is neither its start nor its end", _REWRITE)
    time, size, *more = items(calls[0].arguments())  # window(time, size, slide, start)
    slide = more[0] if more else size
    made = java_class("org.apache.spark.sql.catalyst.expressions.TimeWindow")(time, size, slide, *more[1:])
    return EventWindow(int(made.windowDuration()), int(made.slideDuration()), int(made.startTime()), end, below)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A node that cuts a time into windows, the time, and whether it is the event time of an input, as it stands."""

    node: Any
    time: Any
    is_event_time: bool


def _find_cuts(plan: Any, inputs: Mapping[str, Vocabulary]) -> list[_Cut]:
    nodes = list(iter_plan(plan, inputs))
    given: set[int] = set()
    made_of: dict[int, Any] = {}
    for view in (node for node in nodes if (view_name(node) or "") in inputs):
        name = inputs[str(view_name(view))].event_time
        given |= {number_of(each) for each in items(view.output()) if str(each.name()) == name}
        made_of |= column_definitions(nodes, view)
    found = []
    for node in nodes:
        for expression in items(node.expressions()):
            for each in iter_expression(expression):
                if simple_name(each) in {"PreciseTimestampConversion", "SessionWindow"}:
                    time = items(each.children())[0]
                    if str(time.dataType().typeName()) != "long":  # else it is the way back, of a window's end
                        time = _uncast(time)
                        found.append(_Cut(node, time, leads_to(time, given, made_of)))
    return found


def _find_gap(cuts: Sequence[_Cut]) -> int | None:
    """Return what is added to the time of a row to say where its session could end; None where it is not one number."""
    found = set[int | None]()
    for time in (each.time for each in cuts if not each.is_event_time):
        end = time.child() if simple_name(time) == "Cast" else time
        interval = items(end.children())[1] if simple_name(end) == "TimestampAddInterval" else None
        if interval is None or not interval.foldable() or str(interval.dataType().typeName()) != "interval":
            found.add(None)
        else:
            gap = interval.eval(None)  # a calendar interval: months, days, and microseconds
            days, rest_us = gap.extractAsPeriod(), int(gap.extractAsDuration().toNanos()) // 1_000
            found.add(None if days.toTotalMonths() else int(days.getDays()) * _DAY_US + rest_us)
    gap_us = found.pop() if len(found) == 1 else None
    return gap_us if gap_us is not None and gap_us > 0 else None


def _names_above(plan: Any, cuts: Sequence[_Cut], inputs: Collection[str]) -> Iterator[str]:
    """Yield the names of the nodes above those that cut a time; an input that is read there stands in a subquery."""
    tables = defined_tables(plan, inputs)
    waiting, entered = [plan], set[int]()
    while waiting:
        node = waiting.pop()
        name = simple_name(node)
        yield name if view_name(node) not in inputs else "Subquery"
        if any(node.equals(each.node) for each in cuts):
            continue
        if name == "CTERelationRef":
            number = int(node.cteId())
            waiting += [] if number in entered else [tables[number]]
            entered.add(number)
        elif name == "WithCTE":
            waiting.append(node.plan())
        else:
            waiting += children_of(node)


def _uncast(time: Any) -> Any:
    """Return what a date or a time without a zone was before it became a timestamp, which moves nothing."""
    if simple_name(time) == "Cast" and str(time.child().dataType().typeName()) in {"date", "timestamp_ntz"}:
        return time.child()
    return time


def _shown_end(plan: Any, inputs: Collection[str], vocabulary: Vocabulary) -> bool | None:
    """Say which end of the window the output's event time is: True the end, False the start, None neither."""
    position = [str(each.name()) for each in items(plan.output())].index(vocabulary.event_time)
    found = find_groups(plan, inputs)
    if found is None or found.columns[position] is None:
        return None
    made = {number_of(each): each for each in items(found.aggregate.aggregateExpressions())}
    expression = made.get(number_of(found.columns[position]))
    if expression is not None and simple_name(expression) == "Alias":
        expression = expression.child()
    if expression is None or simple_name(expression) != "GetStructField":
        return None
    window = expression.child()
    if not any(window.semanticEquals(group) for group in items(found.aggregate.groupingExpressions())):
        return None
    # Any struct may have such fields; Spark marks those that it made.
    if simple_name(window) != "AttributeReference" or not any(
        window.metadata().contains(each) for each in _MADE_BY_WINDOW
    ):
        return None
    return {"start": False, "end": True}.get(str(expression.childSchema().apply(expression.ordinal()).name()))
