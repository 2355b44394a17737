"""What this node remembers of its attempts: ``cache/convergence.json``.

Each note names the versions at which it holds (``DatasetGraph.trace_of``), so that none can be wrong: where a dataset
or an input has changed, it says nothing. Without the file, what gave nothing or failed is tried once more.

Source: clauses CONVERGE-9 and CONVERGE-12 in ``spec/plug-ins/convergence.md``.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from odf_convergence.graph import Attempt, DatasetGraph, GraphDataset
from odf_node.ports.notices import wait_after_s

NOTES_FILE: Final = "convergence.json"
MAX_NOTES_BYTES: Final = 64 * 1024**2  # guess: a hundred thousand datasets that all failed
HOUR_MS: Final = 3_600_000
SOON_MS: Final = 5_000
"""How long a failure counts after the versions have changed: an input that changes all the time makes no storm.
# guess"""
_MAX_TEXT: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptNote:
    """What became of the last attempt for a dataset, at the versions of ``trace``; ``text`` empty: it gave nothing."""

    trace: str
    text: str = ""
    count: int = 0
    ended_ms: int = 0
    until_ms: int = 0


@dataclass
class AttemptNotes:
    """Notes of all datasets, by key.

    Attributes:
        attempts: The last ones that gave nothing or failed.
        times_ms: When actions of the last hour ended.
        running: What is worked on, by the process ``worker``.
        worker: A mark of the process that wrote the notes; see ``mark_of_process``.
        asked_for_ms: The deadline for which the source of each dataset was asked last.
    """

    attempts: dict[str, AttemptNote] = field(default_factory=dict)
    times_ms: dict[str, list[int]] = field(default_factory=dict)
    running: tuple[str, ...] = ()
    worker: str = ""
    asked_for_ms: dict[str, int] = field(default_factory=dict)

    def note_done(self, key: str, now_ms: int) -> None:
        """Note that an action wrote something."""
        self.attempts.pop(key, None)
        self._count(key, now_ms)

    def note_nothing(self, key: str, trace: str, now_ms: int) -> None:
        """Note that at these versions there is nothing to write."""
        self.attempts[key] = AttemptNote(trace=trace, ended_ms=now_ms)
        self._count(key, now_ms)

    def forget(self, key: str) -> None:
        """Forget the last attempt: it was ended from outside."""
        self.attempts.pop(key, None)

    def note_failure(self, key: str, trace: str, text: str, now_ms: int) -> None:
        """Note that an action failed at these versions; each failure in a row is followed by a longer rest."""
        before = self.attempts.get(key)
        count = 1 + (before.count if before is not None else 0)
        until_ms = now_ms + int(wait_after_s(min(count, 20)) * 1000)
        text = " ".join(text.split())[:_MAX_TEXT] or "it failed"
        self.attempts[key] = AttemptNote(trace=trace, text=text, count=count, ended_ms=now_ms, until_ms=until_ms)
        self._count(key, now_ms)

    def fail_for(self, key: str, reason: str) -> None:
        """Say why an attempt failed that has just been noted, where that is known better."""
        self.attempts[key] = replace(self.attempts[key], text=reason)

    def mark(self, graph: DatasetGraph, now_ms: int) -> DatasetGraph:
        """Give a graph with what is known of attempts at its versions; forgets datasets that are gone."""
        for notes in (self.attempts, self.times_ms, self.asked_for_ms):
            for key in notes.keys() - graph.datasets.keys():
                del notes[key]
        changed: dict[str, GraphDataset] = {}
        for key in self.attempts.keys() | self.times_ms.keys() | self.asked_for_ms.keys() | set(self.running):
            if (dataset := graph.datasets.get(key)) is not None:
                changed[key] = self._mark_one(graph, dataset, now_ms)
        return replace(graph, datasets={**graph.datasets, **changed})

    def _mark_one(self, graph: DatasetGraph, dataset: GraphDataset, now_ms: int) -> GraphDataset:
        note, key = self.attempts.get(dataset.key), dataset.key
        failed, is_settled = None, False
        if note is not None and note.text:
            is_same = note.trace == graph.trace_of(key)
            until_ms = note.until_ms if is_same else min(note.until_ms, note.ended_ms + SOON_MS)
            # A clock that was set back lengthens no rest.
            until_ms = min(until_ms, now_ms + max(0, note.until_ms - note.ended_ms))
            if is_same or now_ms < until_ms:
                failed = Attempt(text=note.text, until_ms=until_ms, count=note.count)
        elif note is not None:
            is_settled = note.trace == graph.trace_of(key)
        times = [each for each in self.times_ms.get(key, ()) if now_ms - HOUR_MS < each <= now_ms]
        self.times_ms[key] = times
        if not times:
            del self.times_ms[key]
        is_running = key in self.running and is_alive(self.worker)
        return replace(
            dataset,
            failed=failed,
            is_settled=is_settled,
            recent=len(times),
            is_running=is_running,
            asked_for_ms=self.asked_for_ms.get(key, 0),
        )

    def _count(self, key: str, now_ms: int) -> None:
        self.times_ms.setdefault(key, []).append(now_ms)


def mark_of_process(number: int) -> str:
    """Return what marks a process: its number, and when it began, as numbers come round again; empty: there is none."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        return f"{number}-{stat.rpartition(')')[2].split()[19]}"  # proc(5): field 22
    except (OSError, IndexError):
        return ""


def is_alive(worker: str) -> bool:
    """Say whether the process of a mark runs."""
    number = worker.partition("-")[0]
    return number.isdecimal() and len(number) < 12 and worker == mark_of_process(int(number))


def read_attempts(cache: Path) -> AttemptNotes:
    """Return what was noted last; a file that cannot be read is none, as a cache may be deleted."""
    try:
        path = cache / NOTES_FILE
        if path.stat().st_size > MAX_NOTES_BYTES:
            return AttemptNotes()
        found = json.loads(path.read_bytes())
        attempts = {str(key): _note_of(value) for key, value in found["attempts"].items()}
        times = {str(key): [int(each) for each in value] for key, value in found["times_ms"].items()}
        running = tuple(str(each) for each in found["running"])
        asked = {str(key): int(value) for key, value in found["asked_for_ms"].items()}
        return AttemptNotes(attempts, times, running, str(found["worker"]), asked)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return AttemptNotes()


def write_attempts(cache: Path, notes: AttemptNotes) -> bool:
    """Write them; False where that cannot be done: a home that cannot be written is served all the same (DAEMON-18)."""
    text = json.dumps(
        {
            "attempts": {key: asdict(note) for key, note in notes.attempts.items()},
            "times_ms": notes.times_ms,
            "running": notes.running,
            "asked_for_ms": notes.asked_for_ms,
            "worker": mark_of_process(os.getpid()),
        }
    )
    temporary = cache / f".{NOTES_FILE}"
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(cache / NOTES_FILE)
    except OSError:
        return False
    return True


def _note_of(found: Mapping[str, Any]) -> AttemptNote:
    return AttemptNote(
        trace=str(found["trace"]),
        text=str(found["text"]),
        count=max(0, int(found["count"])),
        ended_ms=int(found["ended_ms"]),
        until_ms=int(found["until_ms"]),
    )
