"""Carries the actions of a plan out, by the use cases behind ``odf-node pull``; what came of them is in the chains.

Source: clauses CONVERGE-11 and CONVERGE-12 in ``spec/plug-ins/convergence.md``.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

from odf_convergence.graph import DatasetGraph
from odf_convergence.notes import AttemptNotes
from odf_convergence.planner import NEVER_MS, ActionKind, ConvergencePlan, PlannedAction
from odf_node.composition import Node
from odf_node.exchange.pulling import PullOptions, PullReport
from odf_node.ports.progress import ProgressLine, Silence
from odf_protocol.did import DatasetId

_ACTOR: Final = "convergence"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOutcome:
    """What became of an action.

    Attributes:
        action: Which.
        report: What was done; None where it failed or was left out.
        failure: Why it failed; None: it did not.
        seconds: How long it took.
    """

    action: PlannedAction
    report: PullReport | None = None
    failure: Exception | None = None
    seconds: float = 0.0

    @property
    def blocks(self) -> int:
        """How many it wrote."""
        return 0 if self.report is None else self.report.new_blocks

    @property
    def is_left_out(self) -> bool:
        """What it waited for brought nothing."""
        return self.report is None and self.failure is None


@dataclass
class ActionRunner:
    """Carries plans out, one action after the other.

    Args:
        node: Whose datasets.
        notes: Where attempts in vain are noted.
        on_begin: Called before each action.
    """

    node: Node
    notes: AttemptNotes
    on_begin: Callable[[PlannedAction], ProgressLine] = lambda _action: Silence()
    _changed: set[str] = field(default_factory=set)

    async def run(self, graph: DatasetGraph, plan: ConvergencePlan) -> AsyncIterator[ActionOutcome]:
        """Carry a plan out; an action that fails stops only what is certain to be new by it alone.

        Args:
            graph: That the plan was made of.
            plan: What to do.
        """
        self._changed.clear()
        for action in plan.actions:
            if action.after and not action.is_certain and self._changed.isdisjoint(action.after):
                yield ActionOutcome(action=action)
                continue
            yield await self._run_one(graph, action)

    async def _run_one(self, graph: DatasetGraph, action: PlannedAction) -> ActionOutcome:
        trace, began_s = graph.trace_of(action.key, self._read_versions(graph, action.key)), time.monotonic()
        report: PullReport | None = None
        failure: Exception | None = None
        try:
            (target,) = self.node.planner.plan([action.key])
            report = await self.node.pulling.pull(target, PullOptions(actor=_ACTOR), self.on_begin(action))
            failure = getattr(report, "failure", None)
        except Exception as error:  # noqa: BLE001 - noted, and must not stop what does not rest on it (CONVERGE-9)
            failure = error
        now_ms = self.node.clock.now().unix_ms
        if report is not None and report.new_blocks:
            self._changed.add(action.key)
        if failure is None and action.due_ms != NEVER_MS and action.kind is not ActionKind.STEP:
            self.notes.asked_for_ms[action.key] = action.due_ms
        if failure is not None:
            self.notes.note_failure(action.key, trace, str(failure), now_ms)
        elif action.kind is ActionKind.PULL and action.is_certain and action.key not in self._changed:
            # Who announced it holds it back, or a mirror is behind: asked again as after a failure.
            self.notes.note_failure(action.key, trace, "the block that was announced is not shown there", now_ms)
        elif action.key in self._changed:
            self.notes.note_done(action.key, now_ms)
        else:
            self.notes.note_nothing(action.key, trace, now_ms)
        return ActionOutcome(action=action, report=report, failure=failure, seconds=time.monotonic() - began_s)

    def _read_versions(self, graph: DatasetGraph, key: str) -> dict[str, str]:
        """Read the newest blocks of a dataset and of what it reads as they are now: actions before it changed some."""
        versions: dict[str, str] = {}
        for each in (key, *(item.key for item in graph.datasets[key].inputs)):
            record = self.node.store.find_dataset(DatasetId.parse(each))
            versions[each] = "" if record is None else str(record.head.hash)
        return versions
