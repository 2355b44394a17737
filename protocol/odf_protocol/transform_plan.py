"""Which part of its inputs a derivative has not seen yet, and the request that a recorded step stands for.

One function plans the next step, another rebuilds the plan of a step that somebody recorded; both end in the same
``PlannedInput``, so that running and re-running a transform cannot drift apart.

Source: ODF "Derivative transformations"; clauses PLAN-1 to PLAN-5, PLAN-9 and PLAN-13 in ``spec/transform.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from odf_protocol.block import Block
from odf_protocol.chain.state import InputProgress
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    AddData,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    OffsetInterval,
    SetDataSchema,
    SetTransform,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class InputHead:
    """Where an input stands: its last block and the offset of its last row, None while it has none."""

    block_hash: Multihash
    last_offset: int | None


@dataclass(frozen=True, slots=True)
class PlannedWatermark:
    """A watermark that a block of the input stated, and the system time of that block.

    ``last_offset`` is that of the newest row the input had with the block, None without rows.
    """

    system_time: Timestamp
    event_time: Timestamp
    last_offset: int | None


@dataclass(frozen=True, slots=True)
class PlannedInput:
    """What one input contributes to one step.

    ``slices`` are as the input's blocks state them, oldest first; ``offset_interval`` is the rows of them to be read,
    None for none; ``known_at`` is the system time of the newest block, None where there is none.
    """

    recorded: ExecuteTransformInput
    slices: tuple[DataSlice, ...]
    offset_interval: OffsetInterval | None
    watermarks: tuple[PlannedWatermark, ...]
    known_at: Timestamp | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing to run the engine for: neither rows nor a watermark (PLAN-4)."""
        return self.offset_interval is None and not self.watermarks


@dataclass(frozen=True, slots=True)
class StepBound:
    """How much of an input one step reads, if its blocks allow (PLAN-13): rows, and bytes of their files.

    ``crosses_schemas``: a block that changes the schema of the input does not end the step.
    """

    rows: int
    size_bytes: int
    crosses_schemas: bool = False

    def widened(self) -> "StepBound":
        """Give one that is twice as wide, for a step that gave nothing that a block could record."""
        return StepBound(self.rows * 2, self.size_bytes * 2, crosses_schemas=True)


STEP_BOUND: Final = StepBound(rows=20_000_000, size_bytes=1 << 30)
"""What one step reads at most by default.  # guess: some minutes of one core, well below the limits of a request"""


def find_step_end(previous: InputProgress | None, blocks: Iterable[Block], bound: StepBound | None) -> InputHead | None:
    """Say up to where the next step reads an input (PLAN-13).

    It ends before a block with which it would pass its bound, and before one that changes the schema of rows that it
    would read; but not in the first step that reads the input, as its query may name a column that came since. A block
    is never cut. Reads no further block than the one after the end.

    Args:
        previous: How far earlier steps took the input.
        blocks: The input's blocks after that, oldest first.
        bound: How much is read; None: everything, whatever it takes.

    Returns:
        The end; None where there are no more blocks.
    """
    rows = size_bytes = 0
    last_offset = None if previous is None else previous.offset
    end: InputHead | None = None
    crosses_schemas = previous is None or bound is None or bound.crosses_schemas
    for block in blocks:
        if isinstance(block.event, SetDataSchema) and rows and not crosses_schemas:
            break
        data = block.event.new_data if isinstance(block.event, AddData | ExecuteTransform) else None
        if data is not None:
            added = data.offset_interval.row_count
            is_full = bound is not None and (rows + added > bound.rows or size_bytes + data.size > bound.size_bytes)
            if rows and is_full:
                break
            rows, size_bytes = rows + added, size_bytes + data.size
            last_offset = data.offset_interval.end
        end = InputHead(block.hash, last_offset)
    return end


def next_interval(
    dataset_id: DatasetId, previous: InputProgress | None, head: InputHead | None
) -> ExecuteTransformInput:
    """Say from where to where an input is read in the next step (PLAN-1, PLAN-2).

    Args:
        dataset_id: The input.
        previous: How far any earlier step of the derivative took it, None where none did (PLAN-9).
        head: Up to where it is read, None where nothing is new.
    """
    prev_block, prev_offset = (None, None) if previous is None else (previous.block_hash, previous.offset)
    if head is None:
        return ExecuteTransformInput(dataset_id=dataset_id, prev_block_hash=prev_block, prev_offset=prev_offset)
    return ExecuteTransformInput(
        dataset_id=dataset_id,
        prev_block_hash=prev_block,
        new_block_hash=head.block_hash if head.block_hash != prev_block else None,
        prev_offset=prev_offset,
        new_offset=head.last_offset if head.last_offset != prev_offset else None,
    )


def plan_input(recorded: ExecuteTransformInput, blocks: Iterable[Block]) -> PlannedInput:
    """Collect what the interval ``recorded`` holds.

    Args:
        recorded: The interval, planned or read from a block of the derivative.
        blocks: The input's blocks after ``prev_block_hash`` up to and including ``new_block_hash``, oldest first;
            empty where there is no new block.

    Raises:
        RejectedError: The recorded offsets are not those of the recorded blocks (PLAN-5).
    """
    slices: list[DataSlice] = []
    watermarks: list[PlannedWatermark] = []
    last_offset: int | None = None
    known_at: Timestamp | None = None
    for block in blocks:
        known_at = block.system_time
        if not isinstance(block.event, AddData | ExecuteTransform):
            continue
        if block.event.new_data is not None:
            slices.append(block.event.new_data)
            last_offset = block.event.new_data.offset_interval.end
        if block.event.new_watermark is not None:
            reached = recorded.prev_offset if last_offset is None else last_offset
            watermarks.append(PlannedWatermark(block.system_time, block.event.new_watermark, reached))
    if last_offset != recorded.new_offset:
        raise RejectedError(
            f"PLAN-5 recorded-offset-is-of-recorded-blocks (input {recorded.dataset_id})",
            expected=_offset_text(last_offset),
            found=_offset_text(recorded.new_offset),
        )
    interval = None
    if recorded.new_offset is not None:
        start = 0 if recorded.prev_offset is None else recorded.prev_offset + 1
        interval = OffsetInterval(start=start, end=recorded.new_offset)
    return PlannedInput(recorded, tuple(slices), interval, tuple(watermarks), known_at)


CLOCKS_DIFFER_S: Final = 600
"""How far the clocks of two honest nodes may be apart.  # guess"""


def check_step_time(system_time: Timestamp, inputs: Iterable[PlannedInput]) -> None:
    """Check that a step was not made before what it reads was known (PLAN-14).

    Raises:
        RejectedError: It says so, and by more than clocks differ.
    """
    for planned in inputs:
        if planned.known_at is not None and system_time.seconds < planned.known_at.seconds - CLOCKS_DIFFER_S:
            raise RejectedError(
                f"PLAN-14 step-is-not-older-than-what-it-reads (input {planned.recorded.dataset_id})",
                expected=f"{planned.known_at} or later",
                found=system_time,
            )


def _offset_text(offset: int | None) -> str:
    return "none" if offset is None else str(offset)


def input_ids(transform: SetTransform) -> tuple[DatasetId, ...]:
    """Return the identities of the inputs in their declared order."""
    return tuple(DatasetId.parse(item.dataset_ref) for item in transform.inputs)
