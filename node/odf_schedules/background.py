"""The daemon's schedules: a thread that pulls what is due, a few datasets at once, each in a thread of its own (SCHED).

What is due, and in which order, is said by ``Timetable``; here are clocks, threads, the log and the notes.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from odf_node.composition import Node
from odf_node.daemon.background_work import BackgroundService, RunningDaemon, Start
from odf_node.http.access_log import write_line
from odf_node.http.served_node import Live
from odf_node.ports.metrics import Labels
from odf_protocol.did import DatasetId
from odf_schedules.candidates import CandidateReader
from odf_schedules.notes import NotedPlace, ScheduleNotes, read_notes, write_notes
from odf_schedules.scheduled_pull import ScheduledPull
from odf_schedules.standings import Rests, RunEnded, RunOutcome
from odf_schedules.timetable import DueCandidate, Timetable

LOOK_EACH_S: Final = 5.0  # guess: how soon a dataset that was added, new settings and a clock that was set are noticed
NOTE_EACH_S: Final = 1.0  # guess: what is pulled again after a kill; pulling twice harms nothing
REST: Final = 3
"""Planning rests so many times as long as it took: a quarter of one processor at most.  # guess"""
END_S: Final = 30.0
"""How long a pull that was told to end may take for it; then it is left behind.  # guess: an engine's end takes ten"""


@dataclass(slots=True)
class _Running:
    pull: ScheduledPull
    began_s: float
    is_reported: bool = False


class BackgroundSchedules:
    """Pulls from ``start`` to ``end``; takes its settings from ``live`` at each look.

    Args:
        node: Whose datasets.
        live: The settings in force, and the figures.
        open_node: Opens another node on the same home, for one pull.
        look_each_s: How often datasets and settings are looked at.
        limit_s: How long a pull may take; None: as the settings say.
    """

    def __init__(
        self,
        node: Node,
        live: Live,
        open_node: Callable[[], Node],
        *,
        look_each_s: float = LOOK_EACH_S,
        limit_s: float | None = None,
    ) -> None:
        self._node, self._live, self._open_node = node, live, open_node
        self._look_each_s, self._limit_s = look_each_s, limit_s
        self._candidates = CandidateReader(node.store)
        self._timetable = Timetable({})
        self._changed = threading.Condition()
        self._ended: list[tuple[ScheduledPull, RunEnded]] = []
        self._ends = False
        self._running: dict[DatasetId, _Running] = {}
        self._looked_s = self._noted_s = -float("inf")
        self._noted, self._is_news = ScheduleNotes(), False
        self._stated: tuple[object, ...] = ()
        self._declares = False
        self._failing: dict[Labels, float] = {}
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)
        self._pulls = live.metrics.add_counter(
            "scheduled_pulls_total", "Pulls by schedules that ended, by result.", "result"
        )
        live.metrics.add_gauge("scheduled_pulls_running", "Pulls by schedules that run.", lambda: len(self._running))
        live.metrics.add_family(
            "schedule_failing", "Own datasets whose last pull by a schedule failed.", lambda: self._failing
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop at once: pulls that run are ended, and begin anew with the next process."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        if self._thread.ident is None:
            return
        self._thread.join()
        for running in self._running.values():
            running.pull.stop("the node was stopped")
        give_up_s = time.monotonic() + END_S
        for running in self._running.values():
            running.pull.join(max(0.0, give_up_s - time.monotonic()))
        self._note()

    def _run(self) -> None:
        self._noted = read_notes(self._node.home.folder.cache)
        standings = {key: place.standing for key, place in self._noted.places.items()}
        self._timetable = Timetable(standings, rests=Rests({**self._noted.rests}))
        while True:
            wait_s, began_s = self._look_each_s, time.thread_time()
            try:
                wait_s = self._step()
            except Exception as error:  # noqa: BLE001 - the edge of a thread that goes on for months
                self._on_progress("schedules-wait", level=logging.ERROR, error=type(error).__name__, text=str(error))
            with self._changed:
                # With ten thousand datasets a step is work, and others want the processor too.
                self._changed.wait_for(lambda: self._ends, REST * (time.thread_time() - began_s))
                if not self._ends and not self._ended:
                    self._changed.wait(wait_s)
                if self._ends:
                    return

    def _step(self) -> float:
        """Do what is to be done now, and return in how many seconds there may be more."""
        self._take_ended()
        schedules, declares = self._live.configuration.schedule, self._live.configuration.ingest.manifest_schedules
        if not schedules and not declares and not self._timetable.schedules and not self._running:
            if self._noted.schedules:  # of the process before
                self._note()
            return self._look_each_s
        now_s, now_ms = time.monotonic(), self._now_ms()
        of_settings = self._timetable.schedules[: self._timetable.of_settings]
        if now_s - self._looked_s >= self._look_each_s or (schedules, declares) != (of_settings, self._declares):
            self._looked_s, self._declares = now_s, declares
            candidates = (
                self._list_candidates(declares) if (schedules or declares) and self._node.home.folder.exists() else []
            )
            self._timetable.renew(schedules, candidates, now_ms, self._live.configuration.source)
            self._is_news = True
            self._report_idle()
        self._end_late(now_s)
        for candidate in self._timetable.take_due(now_ms, self._live.configuration.limits.scheduled_pulls):
            pull = ScheduledPull(self._open_node, candidate, self._hear)
            self._running[candidate.id] = _Running(pull, now_s)
            try:
                pull.start()
            except RuntimeError as error:  # the system has no more threads now
                self._hear(pull, RunEnded(RunOutcome.UNAVAILABLE, str(error)))
        if self._is_news:
            places = self._timetable.places.values()
            self._failing = {(("dataset", place.candidate.name),): 1.0 for place in places if place.standing.is_failing}
            if now_s - self._noted_s >= NOTE_EACH_S:
                self._note()
        return self._find_wait_s()

    def _list_candidates(self, declares: bool) -> list[DueCandidate]:
        """List what can be pulled; with its own schedules only where the settings let them hold (SCHED-11)."""
        found = self._candidates.list_candidates()
        return found if declares else [replace(each, schedule=None) for each in found]

    def _take_ended(self) -> None:
        while self._ended:
            with self._changed:
                pull, what = self._ended.pop(0)
            candidate, began_s = pull.candidate, self._running.pop(pull.candidate.id).began_s
            standing = self._timetable.end(candidate.id, what, self._now_ms())
            self._is_news = True
            self._pulls.labels(result=standing.result or what.result).inc()
            facts: dict[str, Any] = {}
            if what.rows:
                facts = {"rows": what.rows, "quarantined_rows": what.quarantined_rows}
            if standing.is_failing:
                facts |= {"text": standing.text, "attempts": standing.attempts or None}
            write_line(
                "scheduled-pull",
                level=logging.ERROR if standing.result is RunOutcome.FAILED else logging.INFO,
                dataset=candidate.name,
                result=standing.result,
                blocks=what.blocks,
                duration_ms=round((time.monotonic() - began_s) * 1000),
                next=None if standing.due_ms is None else show_ms(standing.due_ms),
                **facts,
            )

    def _end_late(self, now_s: float) -> None:
        limit_s = self._read_limit_s()
        for key, running in self._running.items():
            if not running.is_reported and now_s - running.began_s >= limit_s:
                running.is_reported = True
                running.pull.stop(f"it took longer than {limit_s / 60:g} minutes (limits.scheduled_pull_minutes)")
            if now_s - running.began_s >= limit_s + END_S:
                self._timetable.leave(key)

    def _read_limit_s(self) -> float:
        if self._limit_s is not None:
            return self._limit_s
        return self._live.configuration.limits.scheduled_pull_minutes * 60.0

    def _find_wait_s(self) -> float:
        now_ms = self._now_ms()
        due_ms = self._timetable.find_next_due_ms(now_ms)
        waits = [self._look_each_s, self._read_limit_s()]
        if due_ms is not None:
            waits.append((due_ms - now_ms) / 1000)
        if self._is_news:
            waits.append(NOTE_EACH_S)
        return min(waits)

    def _hear(self, pull: ScheduledPull, ended: RunEnded) -> None:
        with self._changed:
            self._ended.append((pull, ended))
            self._changed.notify_all()

    def _report_idle(self) -> None:
        if not self._timetable.schedules and not self._stated:
            return  # nor were there any
        idle = [self._timetable.schedules[number].datasets for number in self._timetable.list_idle_rules()]
        counts = {"schedules": len(self._timetable.schedules), "datasets": len(self._timetable.places)}
        self._on_progress("schedules", level=logging.WARNING if idle else logging.INFO, **counts, without_datasets=idle)

    def _on_progress(self, event: str, *, level: int = logging.INFO, **facts: object) -> None:
        """Say what was not said last."""
        if self._stated != (stated := (event, *facts.values())):
            self._stated = stated
            write_line(event, level=level, **facts)

    def _note(self) -> None:
        """Write down what changed since the last time."""
        table, self._noted_s, self._is_news = self._timetable, time.monotonic(), False
        places = {
            key: NotedPlace(place.rule, place.standing, place.candidate.host) for key, place in table.places.items()
        }
        notes = ScheduleNotes(self._now_ms(), table.schedules, places, table.of_settings, {**table.rests.of_hosts})
        if replace(notes, noted_ms=self._noted.noted_ms) != self._noted and self._node.home.folder.exists():
            self._is_news = not write_notes(self._node.home.folder.cache, notes)
            self._noted = self._noted if self._is_news else notes

    def _now_ms(self) -> int:
        return self._node.clock.now().unix_ms


def show_ms(time_ms: int) -> str:
    """Write a time for the log."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")


@asynccontextmanager
async def _schedules_beside(daemon: RunningDaemon) -> AsyncIterator[Start]:
    schedules = BackgroundSchedules(daemon.node, daemon.live, daemon.open_beside)
    try:
        yield lambda _listening, _app: schedules.start()
    finally:
        await asyncio.to_thread(schedules.end)


SERVICE: Final = BackgroundService(_schedules_beside)
"""Found by its entry point in the group ``odf_node.background``."""
