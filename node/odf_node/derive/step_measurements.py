"""The figures of a step: counted where it is made, and compared where it is made again (REPLAY-13, REPLAY-14).

Behind them, what a run of a derivative did, and how those who observe hear of a step.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from msgspec import structs

from odf_engines.contract import Grade, TransformInput, TransformRequest, TransformResponse
from odf_engines.errors import LimitExceededError
from odf_node.derive.holding import InputHold
from odf_node.ports.observing import DatasetVersion, Run, RunKind, columns_of_schema, version_of
from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore
from odf_protocol.errors import RejectedError
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.step_metrics import NO_STATE, RowsByOperation, StateSize, StepMetrics
from odf_protocol.transform_plan import PlannedInput


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
    grade: Grade | None = None


def metrics_of(
    response: TransformResponse,
    completed: CompletedRequest,
    checkpoint: Path | None,
    *,
    milliseconds: Mapping[str, int] = MappingProxyType({}),
) -> StepMetrics | None:
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
    return StepMetrics(
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


def check_metrics(claimed: StepMetrics, reexecuted: StepMetrics, *, same_engine: bool, sequence_number: int) -> None:
    """Compare the figures of a record with those of its re-execution (REPLAY-14).

    Args:
        claimed: By the record.
        reexecuted: Here.
        same_engine: The record names the engine that is here. Of another build's step only the rows are the same for
            certain.
        sequence_number: Of the step's block.

    Raises:
        RejectedError: They differ, times aside.
    """
    if claimed == structs.replace(reexecuted, milliseconds=claimed.milliseconds):
        return
    compared: dict[str, tuple[object, object]] = {"rows-out": (reexecuted.rows_out, claimed.rows_out)}
    if same_engine:
        compared |= {
            "rows-read": (reexecuted.rows_read, claimed.rows_read),
            "late-rows": (reexecuted.late_rows, claimed.late_rows),
            "state-before": (reexecuted.state_before, claimed.state_before),
            "state-after": (reexecuted.state_after, claimed.state_after),
        }
    for name, (expected, found) in compared.items():
        if expected != found:
            rule = f"REPLAY-14 {name}-of-the-step"
            raise RejectedError(rule, sequence_number=sequence_number, expected=expected, found=found)


@dataclass(frozen=True, slots=True)
class TransformReport:
    """What a run of a derivative did; no rows and no new watermark means that it was up to date.

    ``reaches_heads``: the inputs were read to their ends. ``taken_rows``: of the inputs, that no step took before.
    ``late_rows``: of the inputs, that came too late to change what was given already, and were left out for that.
    ``waits_for``: inputs that state no watermark, without which it gives no rows (PLAN-20). ``holds``: what was left
    unread of inputs that something holds back (PLAN-21).
    """

    record: DatasetRecord
    up_to_date: bool
    new_rows: int = 0
    new_blocks: int = 0
    read_rows: int = 0
    taken_rows: int = 0
    late_rows: int = 0
    seconds: float = 0.0
    reaches_heads: bool = True
    waits_for: tuple[str, ...] = ()
    holds: tuple[InputHold, ...] = ()


def run_of_step(
    store: MetadataStore, record: DatasetRecord, planned: Sequence[PlannedInput], request: TransformRequest, engine: str
) -> Run:
    """Say what begins with a step of a derivative of this node, and which versions of its inputs it reads."""
    inputs = tuple(_version_read(store, *each) for each in zip(planned, request.inputs, strict=True))
    return Run(kind=RunKind.STEP, dataset=version_of(record), inputs=inputs, engine=engine.partition("@")[0])


def _version_read(store: MetadataStore, planned: PlannedInput, asked: TransformInput) -> DatasetVersion:
    read = planned.recorded
    record = store.find_dataset(read.dataset_id)
    block = read.new_block_hash or read.prev_block_hash
    return DatasetVersion(
        dataset_id=str(read.dataset_id),
        name=str(read.dataset_id) if record is None else record.name,
        block=None if block is None else str(block),
        columns=columns_of_schema(rows_schema_of(asked.schema)),
    )


def note_step(run: Run, report: TransformReport, response: TransformResponse, clock: StepClock) -> None:
    """Say of a run what came of its step."""
    run.rows, run.milliseconds = report.new_rows, dict(clock.milliseconds)
    if not report.up_to_date:
        run.written = version_of(report.record, columns_of_schema(response.schema))


@contextmanager
def naming_step(record: DatasetRecord, request: TransformRequest) -> Iterator[None]:
    """Say of a limit that is reached inside at which step it was, and how much that was given (ENGINE-16).

    Raises:
        LimitExceededError: The same, with its place.
    """
    try:
        yield
    except LimitExceededError as error:
        given = [part for each in request.inputs for part in (each.offset_interval, *each.earlier_intervals)]
        rows = sum(part.row_count for part in given if part is not None)
        where = f"the next step of {record.name}, over {rows:,} rows of its inputs"
        where = f"{error.where}, {where}" if error.where else where
        raise LimitExceededError(error.limit, allowed=error.allowed, found=error.found, where=where) from error
