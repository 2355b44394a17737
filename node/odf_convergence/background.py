"""The daemon's reconciler: after commits, of whatever process, it plans and does what brings datasets up to date.

It keeps nothing but notes of attempts in vain: what is to be done follows from chains each time, so a kill at any point
loses nothing and leads to nothing twice. Where nothing was committed and nothing waits for its time, it reads nothing.

Source: clauses CONVERGE-11 to CONVERGE-14 in ``spec/plug-ins/convergence.md``.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from odf_convergence.graph import DatasetGraph
from odf_convergence.home_graph import HomeGraph
from odf_convergence.notes import AttemptNotes, read_attempts, write_attempts
from odf_convergence.planner import ActionBudget, ConvergencePlan, Goal, PlannedAction, make_plan
from odf_convergence.running import ActionOutcome, ActionRunner
from odf_node.composition import Node
from odf_node.configuration.declaration import ConvergenceSettings
from odf_node.configuration.schedule_times import find_next_ms
from odf_node.daemon.background_work import BackgroundService, RunningDaemon, Start
from odf_node.daemon.repeated_look import LOOK_EACH_S, RepeatedLook
from odf_node.daemon.stoppable_work import StoppableWork
from odf_node.http.access_log import write_line
from odf_node.http.served_node import Live
from odf_node.ports.progress import ProgressLine, Silence
from odf_protocol.names import fits_pattern

QUIET_S: Final = 10.0
"""How long a burst of commits is waited for at most, until none came between two looks.  # guess"""
AGAIN_MS: Final = 60_000
"""When what was put off without a time is looked at again.  # guess"""
END_S: Final = 30.0
"""How long an action that was told to end may take for it.  # guess: an engine's end takes ten"""


class BackgroundConvergence(RepeatedLook):
    """Converges from ``start`` to ``end``; takes its settings from ``live`` at each look.

    Args:
        node: Whose datasets; for reading.
        live: The settings in force, and the figures.
        open_node: Opens another node on the same home, with engines of its own, for one plan.
        look_each_s: How often commits are looked for.
    """

    def __init__(
        self, node: Node, live: Live, open_node: Callable[[], Node], *, look_each_s: float = LOOK_EACH_S
    ) -> None:
        super().__init__("convergence", look_each_s, lambda: (live.configuration.converge, node.store.read_change()))
        self._node, self._live, self._open_node = node, live, open_node
        self._graph = HomeGraph(node.home)
        self._notes: AttemptNotes | None = None
        self._seen: object = None
        self._since_s: float | None = None
        self._wake_ms: int | None = None
        self._work: StoppableWork | None = None
        self._stopped_for: str | None = None
        self._waiting = 0
        live.metrics.add_gauge("convergence_waiting", "Datasets that are put off.", lambda: self._waiting)
        self._actions = live.metrics.add_counter(
            "convergence_actions_total", "Actions of convergence that ended, by kind and result.", "kind", "result"
        )

    def end(self, wait_s: float | None = END_S) -> None:
        """Stop; what was not committed is done by the next process."""
        self._stop.set()
        self._stop_work("the node was stopped")
        super().end(wait_s)

    def look(self) -> bool:
        """Plan and do what is due, once it is quiet; say whether something waits."""
        settings = self._live.configuration.converge
        if not (settings.datasets or settings.manifests) or not self._node.home.folder.exists():
            return False
        state, now_ms = (settings, self._node.store.read_change()), self._node.clock.now().unix_ms
        if (
            state == self._seen
            and self._since_s is None
            and not (self._wake_ms is not None and now_ms >= self._wake_ms)
        ):
            return self._wake_ms is not None
        if state != self._seen and not self._is_quiet(state):
            return True
        self._seen, self._since_s = None, None  # what fails on the way is looked at again
        if self._notes is None:
            self._notes = read_attempts(self._node.home.folder.cache)
            self._notes.running = ()
        graph = self._notes.mark(self._graph.read(), now_ms)
        plan = make_plan(graph, list_goals(graph, settings, now_ms), now_ms, budget_of(settings))
        self._waiting = len(plan.put_off)
        if plan.actions:
            self._run_plan(graph, plan, self._notes, settings)
            return True  # what it wrote is looked at again, and what came meanwhile
        self._seen = state
        times = [AGAIN_MS + now_ms if each.until_ms is None else each.until_ms for each in plan.put_off]
        self._wake_ms = min(times, default=None)
        return self._wake_ms is not None

    def _is_quiet(self, state: object) -> bool:
        """Say whether a burst of commits is over: one action reads what all of them brought."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s, self._burst = now_s, state
            return False
        if state != self._burst and now_s - self._since_s < QUIET_S:
            self._burst = state
            return False
        return True

    def _run_plan(
        self, graph: DatasetGraph, plan: ConvergencePlan, notes: AttemptNotes, settings: ConvergenceSettings
    ) -> None:
        cache = self._node.home.folder.cache
        limit_s = settings.action_minutes * 60.0
        work = StoppableWork(self._open_node)
        self._work, self._stopped_for = work, None
        if self._stop.is_set():
            return
        timers: list[threading.Timer] = []
        current: list[PlannedAction] = []

        def begin(action: PlannedAction) -> ProgressLine:
            end_timer()
            current[:] = [action]
            notes.running = (action.key,)
            write_attempts(cache, notes)
            reason = f"it took longer than {settings.action_minutes} minutes (converge.action_minutes)"
            timers[:] = [threading.Timer(limit_s, self._stop_work, (reason,))]
            timers[0].daemon = True
            timers[0].start()
            return Silence()

        def end_timer() -> None:
            for each in timers:
                each.cancel()

        async def run(node: Node) -> None:
            async for outcome in ActionRunner(node, notes, begin).run(graph, plan):
                end_timer()
                current.clear()
                if outcome.failure is not None and self._stop.is_set():
                    notes.forget(outcome.action.key)
                    return
                if outcome.failure is not None and (reason := self._find_reason()):
                    notes.fail_for(outcome.action.key, reason)
                self._report(outcome)

        try:
            work.run(run)
        except asyncio.CancelledError:
            if not self._stop.is_set() and current:
                now_ms, key = self._node.clock.now().unix_ms, current[0].key
                notes.note_failure(key, graph.trace_of(key), self._find_reason(), now_ms)
        finally:
            end_timer()
            self._work = None
            notes.running = ()
            write_attempts(cache, notes)

    def _stop_work(self, reason: str) -> None:
        self._stopped_for = self._stopped_for or reason
        if (work := self._work) is not None:
            work.stop()

    def _find_reason(self) -> str:
        return self._stopped_for or ""

    def _report(self, outcome: ActionOutcome) -> None:
        if outcome.is_left_out:
            return
        result = "failed" if outcome.failure is not None else "changed" if outcome.blocks else "unchanged"
        self._actions.labels(kind=str(outcome.action.kind), result=result).inc()
        facts = {} if outcome.failure is None else {"text": " ".join(str(outcome.failure).split())}
        write_line(
            "converged",
            level=logging.INFO if outcome.failure is None else logging.ERROR,
            dataset=outcome.action.name,
            action=str(outcome.action.kind),
            result=result,
            blocks=outcome.blocks,
            duration_ms=round(outcome.seconds * 1000),
            **facts,
        )


def list_goals(graph: DatasetGraph, settings: ConvergenceSettings, now_ms: int) -> list[Goal]:
    """List what should be: the datasets that the settings name, and those that say so themselves if settings let them.

    All that these rest on goes along. For a deadline, sources are asked once before each.
    """
    patterns = (settings.datasets or "").split()
    goals: list[Goal] = []
    for key in graph.order:
        dataset = graph.datasets[key]
        declared = dataset.declared if settings.manifests else None
        priority = 0 if declared is None else declared.priority
        if dataset.head is None:
            continue
        if any(fits_pattern(pattern, dataset.name) for pattern in patterns) or declared is not None:
            goals.append(Goal(key=key, priority=priority))
        if declared is not None and declared.by is not None:
            due_ms = find_next_ms(declared.by, now_ms)
            goals += [] if due_ms is None else [Goal(key=key, asks=True, due_ms=due_ms, priority=priority)]
    return goals


def budget_of(settings: ConvergenceSettings) -> ActionBudget:
    """Give what actions may cost; 0 is no bound."""
    return ActionBudget(size_bytes=settings.action_bytes or None, per_hour=settings.actions_per_hour or None)


@asynccontextmanager
async def _convergence_beside(daemon: RunningDaemon) -> AsyncIterator[Start]:
    convergence = BackgroundConvergence(daemon.node, daemon.live, daemon.open_beside)
    try:
        yield lambda _listening, _app: convergence.start()
    finally:
        await asyncio.to_thread(convergence.end)


SERVICE: Final = BackgroundService(_convergence_beside)
"""Found by its entry point in the group ``odf_node.background``."""
