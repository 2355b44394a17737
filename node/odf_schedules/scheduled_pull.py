"""One pull by a schedule: what ``odf-node pull NAME`` does, in a thread of its own that can be told to end."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from odf_node.composition import Node
from odf_node.daemon.stoppable_work import StoppableWork
from odf_node.exchange.pulling import PullOptions, PullReport
from odf_node.ingest.report import IngestReport
from odf_node.ports.progress import Silence
from odf_node.ports.sources import SourceUnavailableError
from odf_protocol.errors import OdfError, UnavailableError
from odf_schedules.standings import RunEnded, RunOutcome
from odf_schedules.timetable import DueCandidate

_ACTOR: Final = "schedule"
_CLIENT_ERRORS: Final = range(400, 500)
_PASSING: Final = frozenset({408, 425, 429})
"""Of these answers, those that mean: later."""


class ScheduledPull:
    """Runs from ``start`` until ``on_end`` was called, once, in the thread of the pull.

    Args:
        open_node: Opens a node on the home; the pull has one of its own, with its own engines.
        candidate: What to pull.
        on_end: Hears what became of it.
    """

    def __init__(
        self,
        open_node: Callable[[], Node],
        candidate: DueCandidate,
        on_end: "Callable[[ScheduledPull, RunEnded], None]",
    ) -> None:
        self.candidate = candidate
        self._work = StoppableWork(open_node)
        self._on_end = on_end
        self._stopped_for: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"pull {candidate.name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, reason: str) -> None:
        """End it soon, from any thread: what it has not committed is dropped, and it has failed for ``reason``."""
        if self._stopped_for is None:
            self._stopped_for = reason
        self._work.stop()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, but no longer."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            ended = self._work.run(self._pull)
        except asyncio.CancelledError:
            ended = RunEnded(RunOutcome.FAILED)
        except Exception as error:  # noqa: BLE001 - the edge of a thread: one dataset must not stop the others
            ended = judge_failure(error)
        if self._stopped_for is not None and ended.result in {RunOutcome.FAILED, RunOutcome.UNAVAILABLE}:
            ended = RunEnded(RunOutcome.FAILED, self._stopped_for, ended.blocks)
        self._on_end(self, ended)

    async def _pull(self, node: Node) -> RunEnded:
        (target,) = node.planner.plan([str(self.candidate.id)])
        return _judge(await node.pulling.pull(target, PullOptions(actor=_ACTOR), Silence()))


def judge_failure(error: Exception, blocks: int = 0) -> RunEnded:
    """Say whether what failed may heal by itself within the hour (SCHED-5)."""
    if isinstance(error, SourceUnavailableError) and error.status in _CLIENT_ERRORS and error.status not in _PASSING:
        return RunEnded(RunOutcome.FAILED, _line_of(error), blocks)
    if isinstance(error, UnavailableError | OSError):
        rest_s = error.retry_after_s if isinstance(error, SourceUnavailableError) else 0
        return RunEnded(RunOutcome.UNAVAILABLE, _line_of(error), blocks, rest_s)
    if isinstance(error, OdfError):
        return RunEnded(RunOutcome.FAILED, _line_of(error), blocks)
    return RunEnded(RunOutcome.FAILED, f"a fault of odf-node itself: {type(error).__name__}: {_line_of(error)}", blocks)


def _judge(report: PullReport) -> RunEnded:
    failure = getattr(report, "failure", None)
    ended = RunEnded(RunOutcome.UPDATED if report.new_blocks else RunOutcome.UP_TO_DATE, blocks=report.new_blocks)
    if failure is not None:
        ended = judge_failure(failure, report.new_blocks)
    if isinstance(report, IngestReport):
        return replace(ended, rows=report.counts.describe_whole(), quarantined_rows=report.counts.quarantined)
    return ended


def _line_of(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
