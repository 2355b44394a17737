"""The figures of a step: counted where it is made, and compared where it is made again (REPLAY-13, REPLAY-14)."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from msgspec import structs

from odf_engines.contract import TransformRequest, TransformResponse
from odf_protocol.errors import RejectedError
from odf_protocol.step_statistics import NO_STATE, RowsByOperation, StateSize, StepStatistics


@dataclass(slots=True)
class StepClock:
    """Measures what of a step takes how long, in milliseconds; what is done twice is added up."""

    milliseconds: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def measuring(self, name: str) -> Iterator[None]:
        """Add the time inside to what ``name`` took."""
        began_ns = time.monotonic_ns()
        try:
            yield
        finally:
            self.add(name, (time.monotonic_ns() - began_ns) // 1_000_000)

    def add(self, name: str, milliseconds: int) -> None:
        """Add to what ``name`` took."""
        self.milliseconds[name] = self.milliseconds.get(name, 0) + milliseconds

    def split(self, name: str, part: str, seconds: float) -> None:
        """Move seconds of what ``name`` took to ``part``; at most all of it."""
        moved = min(self.milliseconds.get(name, 0), max(round(seconds * 1000), 0))
        self.add(name, -moved)
        self.add(part, moved)


@dataclass(frozen=True, slots=True)
class CompletedRequest:
    """A request with all rows that its query reads, and how much it has to know before the step and after it."""

    request: TransformRequest
    state_before: StateSize = NO_STATE
    state_after: StateSize = NO_STATE


def figures_of(
    response: TransformResponse,
    completed: CompletedRequest,
    checkpoint: Path | None,
    *,
    milliseconds: Mapping[str, int] = MappingProxyType({}),
) -> StepStatistics | None:
    """Put together what an engine's host counted and the state around the step; None: nobody counted the rows.

    Args:
        response: To the step; its files are where it says.
        completed: What it answers.
        checkpoint: That the step started from.
        milliseconds: What took how long.
    """
    counted = response.statistics
    if counted.rows_by_operation is None:
        return None
    return StepStatistics(
        rows_read=counted.rows_by_input,
        rows_out=RowsByOperation(*counted.rows_by_operation),
        late_rows=counted.late_rows,
        state_before=_with_checkpoint(completed.state_before, checkpoint),
        state_after=_with_checkpoint(completed.state_after, response.checkpoint_path),
        milliseconds=dict(milliseconds),
    )


def _with_checkpoint(inputs: StateSize, checkpoint: Path | None) -> StateSize:
    return (
        inputs
        if checkpoint is None
        else structs.replace(inputs, size_bytes=inputs.size_bytes + checkpoint.stat().st_size)
    )


def check_figures(
    claimed: StepStatistics, recomputed: StepStatistics, *, same_engine: bool, sequence_number: int
) -> None:
    """Compare the figures of a record with those of its re-execution (REPLAY-14).

    Args:
        claimed: By the record.
        recomputed: Here.
        same_engine: The record names the engine that is here. Of another build's step only the rows are the same for
            certain.
        sequence_number: Of the step's block.

    Raises:
        RejectedError: They differ, times aside.
    """
    if claimed == structs.replace(recomputed, milliseconds=claimed.milliseconds):
        return
    compared: dict[str, tuple[object, object]] = {"rows-out": (recomputed.rows_out, claimed.rows_out)}
    if same_engine:
        compared |= {
            "rows-read": (recomputed.rows_read, claimed.rows_read),
            "late-rows": (recomputed.late_rows, claimed.late_rows),
            "state-before": (recomputed.state_before, claimed.state_before),
            "state-after": (recomputed.state_after, claimed.state_after),
        }
    for name, (expected, found) in compared.items():
        if expected != found:
            rule = f"REPLAY-14 {name}-of-the-step"
            raise RejectedError(rule, sequence_number=sequence_number, expected=expected, found=found)
