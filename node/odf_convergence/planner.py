"""Which actions lead from what is to what should be, in which order, and what is put off. Pure; the time is passed in.

A plan has at most one action for each dataset, inputs first. What changed once or a thousand times since the last step
is one action: an action reads all that there is. A dataset whose input is about to change waits for it, so that it is
computed once, and not before and after.

Source: clauses CONVERGE-6 to CONVERGE-9 in ``spec/plug-ins/convergence.md``.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from odf_convergence.graph import UNKNOWN_COST, ActionCost, DatasetGraph, GraphDataset
from odf_convergence.judging import Assessment, DatasetState, judge_all

NEVER_MS: Final = 2**63 - 1
"""A deadline that is none."""
_LEAD: Final = 1.5  # guess: how much longer than the last time things take
_MARGIN_MS: Final = 60_000  # guess: starts of engines, and other work that goes on


class ActionKind(StrEnum):
    """What is done."""

    PULL = "pull"
    """Another node is asked for newer blocks."""
    INGEST = "ingest"
    """The source of an own root is asked for new rows."""
    STEP = "step"
    """The steps of an own derivative are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What should be: a dataset and all that it rests on are up to date.

    Attributes:
        key: Of the dataset.
        asks: Sources and other nodes are asked for news; else what is here, or announced, is enough.
        due_ms: When it has to be so, in milliseconds since 1970; None: as soon as possible.
        priority: Higher ones go first.
    """

    key: str
    asks: bool = False
    due_ms: int | None = None
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionBudget:
    """What actions may cost; None: no bound.

    Attributes:
        size_bytes: Of an action, as far as it is known before.
        seconds: Of all actions of a plan together, as they took the last time.
        per_hour: Actions of one dataset in an hour: what others change all the time is not followed each time.
    """

    size_bytes: int | None = None
    seconds: float | None = None
    per_hour: int | None = None


NO_BUDGET: Final = ActionBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """One action.

    Attributes:
        key: Of the dataset.
        name: Of it.
        kind: What is done.
        why: In words.
        place: What is asked: a source or another node; empty for steps.
        after: Keys of datasets whose actions come first.
        is_certain: There is something to do; else it depends on what comes of actions before it.
        due_ms: The earliest deadline that it serves; ``NEVER_MS``: none.
        priority: The highest of what it serves.
        cost: What it took the last time.
    """

    key: str
    name: str
    kind: ActionKind
    why: str
    place: str = ""
    after: tuple[str, ...] = ()
    is_certain: bool = True
    due_ms: int = NEVER_MS
    priority: int = 0
    cost: ActionCost = UNKNOWN_COST


@dataclass(frozen=True, slots=True)
class PutOff:
    """A dataset that should be up to date and is left alone: why, and until when (ms since 1970; None: not known)."""

    key: str
    name: str
    why: str
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ConvergencePlan:
    """What is done, in order, and what is not."""

    actions: tuple[PlannedAction, ...]
    put_off: tuple[PutOff, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether all is as it should be, as far as something can be done for it."""
        return not self.actions


@dataclass(slots=True)
class _Want:
    """What all goals together want of one dataset."""

    asks: bool = False
    due_ms: int = NEVER_MS
    priority: int = 0


@dataclass(slots=True)
class _Sketch:
    """A plan in the making."""

    graph: DatasetGraph
    judged: Mapping[str, Assessment]
    wants: Mapping[str, _Want]
    budget: ActionBudget
    now_ms: int
    actions: dict[str, PlannedAction] = field(default_factory=dict)
    put_off: dict[str, PutOff] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    """Datasets that change soon and not by an action of this plan; what reads them waits."""


def make_plan(
    graph: DatasetGraph, goals: Iterable[Goal], now_ms: int, budget: ActionBudget = NO_BUDGET
) -> ConvergencePlan:
    """Plan what leads to what should be.

    Args:
        graph: What is.
        goals: What should be.
        now_ms: Milliseconds since 1970.
        budget: What it may cost.
    """
    judged = judge_all(graph)
    wants, later = _spread(graph, goals, now_ms)
    sketch = _Sketch(graph, judged, wants, budget, now_ms)
    for key in graph.order:
        if key in wants:
            _consider(sketch, graph.datasets[key])
    ordered = _keep_budget(sketch, _order(graph, sketch.actions))
    put_off = [each for each in later if each.key not in sketch.actions]
    return ConvergencePlan(tuple(ordered), (*sketch.put_off.values(), *put_off))


def _spread(graph: DatasetGraph, goals: Iterable[Goal], now_ms: int) -> tuple[dict[str, _Want], list[PutOff]]:
    """Carry goals up to all that their datasets rest on; a deadline that is far away waits."""
    wants: dict[str, _Want] = {}
    later: list[PutOff] = []
    for goal in goals:
        if goal.key not in graph.datasets:
            continue
        if goal.due_ms is not None:
            begins_ms = find_begin_ms(graph, goal)
            if now_ms < begins_ms:
                name = graph.datasets[goal.key].name
                later.append(PutOff(goal.key, name, "it is due later", begins_ms))
                continue
        _merge(wants.setdefault(goal.key, _Want()), goal.asks, goal.due_ms, goal.priority)
    for key in reversed(graph.order):
        if (want := wants.get(key)) is not None and key not in graph.circle_of:
            for item in graph.datasets[key].inputs:
                _merge(wants.setdefault(item.key, _Want()), want.asks, want.due_ms, want.priority)
    return wants, later


def _merge(want: _Want, asks: bool, due_ms: int | None, priority: int) -> None:
    want.asks = want.asks or asks
    want.due_ms = min(want.due_ms, NEVER_MS if due_ms is None else due_ms)
    want.priority = max(want.priority, priority)


def find_begin_ms(graph: DatasetGraph, goal: Goal) -> int:
    """Say when the first action for a deadline begins: earlier by what all took the last time, and more."""
    assert goal.due_ms is not None
    costs = (graph.datasets[key].cost.seconds or 0.0 for key in graph.list_above([goal.key]))
    return goal.due_ms - _MARGIN_MS - int(sum(costs) * 1000 * _LEAD)


def _consider(sketch: _Sketch, dataset: GraphDataset) -> None:
    """Decide about one dataset, after all that it rests on."""
    want, judged = sketch.wants[dataset.key], sketch.judged[dataset.key]
    before = tuple(item.key for item in dataset.inputs if item.key in sketch.actions)
    if judged.state is DatasetState.RUNNING:
        sketch.blocked.add(dataset.key)
        _put_off(sketch, dataset, "it is being worked on")
        return
    waits = next((item.key for item in dataset.inputs if item.key in sketch.blocked), None)
    if waits is not None and dataset.is_own:
        sketch.blocked.add(dataset.key)
        if judged.is_due:
            _put_off(sketch, dataset, f"its input {sketch.graph.datasets[waits].name} is about to change")
        return
    lacks = dataset.is_own and any(sketch.graph.datasets[item.key].head is None for item in dataset.inputs)
    if dataset.head is None or lacks or dataset.key in sketch.graph.circle_of:
        _put_off(sketch, dataset, judged.why)
        return
    kind = _kind_of(dataset, asks=want.asks)
    was_asked = want.due_ms != NEVER_MS and dataset.asked_for_ms >= want.due_ms
    asks = want.asks and kind is not ActionKind.STEP and not was_asked
    if kind is None or not (judged.is_due or before or asks):
        if judged.state in {DatasetState.HELD, DatasetState.WAITING}:
            _put_off(sketch, dataset, f"{judged.state}: {judged.why}")
        elif kind is None and judged.is_due:
            _put_off(sketch, dataset, f"{judged.why}; its subscription brings it")
        return
    if not _is_allowed(sketch, dataset):
        return
    why = judged.why if judged.is_due else "its source is asked" if asks else _describe_after(sketch, before)
    sketch.actions[dataset.key] = PlannedAction(
        key=dataset.key,
        name=dataset.name,
        kind=kind,
        why=why,
        place=dataset.place,
        after=before,
        is_certain=judged.is_due and judged.state is not DatasetState.HELD,
        due_ms=want.due_ms,
        priority=want.priority,
        cost=dataset.cost,
    )


def _kind_of(dataset: GraphDataset, *, asks: bool) -> ActionKind | None:
    """Say what can be done for a dataset; None: nothing."""
    if not dataset.is_own:
        is_news = dataset.announced is not None and dataset.head is not None and dataset.announced > dataset.head
        return ActionKind.PULL if dataset.place and (asks or (is_news and not dataset.is_followed)) else None
    if dataset.is_derivative:
        return ActionKind.STEP
    return ActionKind.INGEST if dataset.inputs or (dataset.place and asks) else None


def _is_allowed(sketch: _Sketch, dataset: GraphDataset) -> bool:
    """Check backoff and the budget of one action; what is not allowed is put off, and said why."""
    budget = sketch.budget
    if dataset.failed is not None and sketch.now_ms < dataset.failed.until_ms:
        text = f"it failed {dataset.failed.count:,} times: {dataset.failed.text}"
        _put_off(sketch, dataset, text, dataset.failed.until_ms)
        return False
    if budget.per_hour is not None and dataset.recent >= budget.per_hour:
        text = f"it had {dataset.recent:,} actions within an hour, as many as its budget allows"
        _put_off(sketch, dataset, text)
        return False
    size = dataset.cost.size_bytes
    if budget.size_bytes is not None and size is not None and size > budget.size_bytes:
        text = f"it reads {size:,} bytes, its budget allows {budget.size_bytes:,}; odf-node pull {dataset.name}"
        _put_off(sketch, dataset, text)
        return False
    return True


def _put_off(sketch: _Sketch, dataset: GraphDataset, why: str, until_ms: int | None = None) -> None:
    sketch.put_off[dataset.key] = PutOff(dataset.key, dataset.name, why, until_ms)


def _describe_after(sketch: _Sketch, before: tuple[str, ...]) -> str:
    return f"after {', '.join(sketch.actions[key].name for key in before)}"


def _order(graph: DatasetGraph, actions: Mapping[str, PlannedAction]) -> list[PlannedAction]:
    """Order actions: inputs first; where that leaves it open, the earlier deadline, the higher priority, the name."""
    place = {key: number for number, key in enumerate(graph.order)}
    followers: dict[str, list[str]] = {}
    waiting = {key: len(each.after) for key, each in actions.items()}
    for key, each in actions.items():
        for source in each.after:
            followers.setdefault(source, []).append(key)
    ready = [_rank(each, place) for key, each in actions.items() if not waiting[key]]
    heapq.heapify(ready)
    ordered: list[PlannedAction] = []
    while ready:
        key = heapq.heappop(ready)[-1]
        ordered.append(actions[key])
        for follower in followers.get(key, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, _rank(actions[follower], place))
    return ordered


def _rank(action: PlannedAction, place: Mapping[str, int]) -> tuple[int, int, int, str]:
    return action.due_ms, -action.priority, place[action.key], action.key


def _keep_budget(sketch: _Sketch, ordered: list[PlannedAction]) -> list[PlannedAction]:
    """Leave out what the budget of a plan does not allow, and what would come after it; the first action stays."""
    if sketch.budget.seconds is None:
        return ordered
    kept: list[PlannedAction] = []
    dropped: set[str] = set()
    spent = 0.0
    for action in ordered:
        cost = action.cost.seconds or 0.0
        # What comes after one that is left out would be computed twice.
        if (kept and spent + cost > sketch.budget.seconds) or not dropped.isdisjoint(action.after):
            dropped.add(action.key)
            _put_off(sketch, sketch.graph.datasets[action.key], "the budget of this round is spent")
            continue
        spent += cost
        kept.append(action)
    return kept
