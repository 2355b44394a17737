"""Which part of its inputs a derivative has not seen yet, and the request that a recorded step stands for.

One function plans the next step, another rebuilds the plan of a step that somebody recorded; both end in the same
``PlannedInput``, so that running and re-running a transform cannot drift apart.

Source: ODF "Derivative transformations"; clauses PLAN-1 to PLAN-5 in ``spec/transform.md``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from odf_protocol.block import Block
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.events import (
    AddData,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    OffsetInterval,
    SetTransform,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class InputHead:
    """Where an input stands: its head block and the offset of its last row, None while it has none."""

    dataset_id: DatasetId
    block_hash: Multihash
    last_offset: int | None


@dataclass(frozen=True, slots=True)
class InputWatermark:
    """A watermark that a block of the input stated, and the system time of that block."""

    system_time: Timestamp
    event_time: Timestamp


@dataclass(frozen=True, slots=True)
class PlannedInput:
    """What one input contributes to one step.

    ``slices`` are as the input's blocks state them, oldest first; ``offset_interval`` is the rows of them to be read,
    None for none.
    """

    recorded: ExecuteTransformInput
    slices: tuple[DataSlice, ...]
    offset_interval: OffsetInterval | None
    watermarks: tuple[InputWatermark, ...]

    @property
    def is_empty(self) -> bool:
        """Nothing to run the engine for: neither rows nor a watermark (PLAN-4)."""
        return self.offset_interval is None and not self.watermarks


def next_interval(previous: ExecuteTransformInput | None, head: InputHead) -> ExecuteTransformInput:
    """Say from where to where an input is read in the next step (PLAN-1, PLAN-2).

    Args:
        previous: The same input in the newest ExecuteTransform of the derivative, None at the first run.
        head: The input as it stands now.
    """
    prev_block = (previous.new_block_hash or previous.prev_block_hash) if previous else None
    prev_offset = previous.prev_offset if previous else None
    if previous and previous.new_offset is not None:
        prev_offset = previous.new_offset
    return ExecuteTransformInput(
        dataset_id=head.dataset_id,
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
    watermarks: list[InputWatermark] = []
    last_offset: int | None = None
    for block in blocks:
        if not isinstance(block.event, AddData | ExecuteTransform):
            continue
        if block.event.new_data is not None:
            slices.append(block.event.new_data)
            last_offset = block.event.new_data.offset_interval.end
        if block.event.new_watermark is not None:
            watermarks.append(InputWatermark(block.system_time, block.event.new_watermark))
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
    return PlannedInput(recorded, tuple(slices), interval, tuple(watermarks))


def previous_inputs(
    execution: ExecuteTransform | None, inputs: Sequence[DatasetId]
) -> tuple[ExecuteTransformInput | None, ...]:
    """Pair the inputs of the transform in force with those of the newest execution, by dataset (PLAN-3)."""
    recorded = {item.dataset_id: item for item in execution.query_inputs} if execution else {}
    return tuple(recorded.get(dataset_id) for dataset_id in inputs)


def _offset_text(offset: int | None) -> str:
    return "none" if offset is None else str(offset)


def input_ids(transform: SetTransform) -> tuple[DatasetId, ...]:
    """Return the identities of the inputs in their declared order."""
    return tuple(DatasetId.parse(item.dataset_ref) for item in transform.inputs)
