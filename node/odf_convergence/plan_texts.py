"""A plan for people, and as plain values for scripts."""

from typing import Any, Final

from odf_convergence.graph import DatasetGraph
from odf_convergence.planner import NEVER_MS, ConvergencePlan, PlannedAction
from odf_node.cli.console import Console
from odf_node.wording import count_of
from odf_protocol.errors import MalformedError
from odf_protocol.timestamp import Timestamp

_COLUMNS: Final = {"number": ">", "kind": "ACTION", "name": "DATASET", "why": "WHY", "seconds": ">SECONDS"}


def show_plan(console: Console, graph: DatasetGraph, plan: ConvergencePlan, *, as_json: bool) -> None:
    """Show what is done in order, and what is left alone and why."""
    if as_json:
        console.json(plan_to_plain(graph, plan))
        return
    rows = [
        {
            "number": number,
            "kind": f"{each.kind}{'' if each.is_certain else '?'}",
            "name": each.name,
            "why": each.why,
            "seconds": "-" if each.cost.seconds is None else f"{each.cost.seconds:,.1f}",
        }
        for number, each in enumerate(plan.actions, 1)
    ]
    console.table(rows, _COLUMNS, empty="nothing is to be done")
    for left in plan.put_off:
        until = "" if left.until_ms is None else f" (until {_time_of(left.until_ms)})"
        console.line(f"{left.name} is left alone: {left.why}{until}")
    if rows:
        known = sum(each.cost.seconds or 0.0 for each in plan.actions)
        maybe = sum(not each.is_certain for each in plan.actions)
        text = f"; {count_of(maybe, 'action')} marked ? only if an action before brings something" if maybe else ""
        console.text(f"{count_of(len(rows), 'action')}, {known:,.1f} s by what they took the last time{text}")


def plan_to_plain(graph: DatasetGraph, plan: ConvergencePlan) -> dict[str, Any]:
    """Give a plan as plain values."""
    return {
        "actions": [action_to_plain(graph, each) for each in plan.actions],
        "putOff": [
            {"dataset": each.name, "id": each.key, "why": each.why, "until": _time_of(each.until_ms)}
            for each in plan.put_off
        ],
    }


def action_to_plain(graph: DatasetGraph, each: PlannedAction) -> dict[str, Any]:
    """Give an action as plain values."""
    return {
        "action": str(each.kind),
        "dataset": each.name,
        "id": each.key,
        "why": each.why,
        "place": each.place or None,
        "after": [graph.datasets[key].name for key in each.after],
        "certain": each.is_certain,
        "due": None if each.due_ms == NEVER_MS else _time_of(each.due_ms),
        "seconds": each.cost.seconds,
        "rowsRead": each.cost.rows,
    }


def _time_of(time_ms: int | None) -> str | None:
    try:
        return None if time_ms is None else str(Timestamp.from_unix_ms(time_ms))
    except MalformedError:
        return None
