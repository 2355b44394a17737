"""What a step of a derivative did, in figures: for those who run it, and for those who re-execute it.

All figures but times follow from the chains of the inputs, the query and the rows of the step, so re-execution gives
the same ones. Times are what its writer measured; nobody compares them.

Source: clauses REPLAY-13 and REPLAY-14 in ``spec/extensions/replay.md``.
"""

from typing import Annotated, Any, Final

import msgspec

from odf_protocol.block import Block
from odf_protocol.canonical_json import Count, Document, ShortText
from odf_protocol.errors import RejectedError
from odf_protocol.events import ExecuteTransform, ExecuteTransformInput

MAX_INPUTS: Final = 1000  # guess
_MAX_TIMES: Final = 32  # guess: parts of a step that somebody measures


class RowsByOperation(Document, frozen=True, omit_defaults=False):
    """Rows that a step gave: new, taken back, and both halves of corrections."""

    append: Count = 0
    retract: Count = 0
    correct_from: Count = 0
    correct_to: Count = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.append + self.retract + self.correct_from + self.correct_to

    def __str__(self) -> str:
        parts = [f"+{self.append:,}"]
        if self.retract:
            parts.append(f"-{self.retract:,}")
        if self.correct_from or self.correct_to:
            parts.append(f"{max(self.correct_from, self.correct_to):,} corrected")
        return " ".join(parts)


class StateSize(Document, frozen=True, kw_only=True, omit_defaults=False):
    """What a step has to know of what came before it: rows of whole inputs, and bytes of their files and checkpoints.

    Bytes are those that blocks state, not those that a node's own copies take.
    """

    rows: Count = 0
    size_bytes: Count = msgspec.field(default=0, name="bytes")


NO_STATE: Final = StateSize()


class StepMetrics(Document, frozen=True, kw_only=True, omit_defaults=False):
    """What one step did, as records hold it.

    Attributes:
        rows_read: Of each input, in the order of SetTransform; None: nobody counted.
        rows_out: Rows of the step.
        late_rows: Of the inputs, that came too late to change what was given already.
        state_before: What the step had to know.
        state_after: What the next one will have to know.
        milliseconds: What took how long, by the words of the writer; a claim that nobody compares.
    """

    rows_read: Annotated[tuple[Count | None, ...], msgspec.Meta(max_length=MAX_INPUTS)]
    rows_out: RowsByOperation
    late_rows: Count
    state_before: StateSize = NO_STATE
    state_after: StateSize = NO_STATE
    milliseconds: Annotated[dict[ShortText, Count], msgspec.Meta(max_length=_MAX_TIMES)] = msgspec.field(
        default_factory=dict
    )

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values, under the names that records use."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return values

    @property
    def total_read(self) -> int:
        """Rows read of all inputs."""
        return sum(count or 0 for count in self.rows_read)

    @property
    def total_ms(self) -> int:
        """All that took time, in milliseconds."""
        return sum(self.milliseconds.values())


def check_metrics_fit(statistics: StepMetrics, block: Block) -> None:
    """Check what a block says of figures about its step by itself (REPLAY-14).

    Raises:
        RejectedError: Other rows than the step adds, or more rows read than an input has.
    """
    event = block.event
    assert isinstance(event, ExecuteTransform)
    rows = 0 if event.new_data is None else event.new_data.offset_interval.row_count
    if statistics.rows_out.total != rows:
        raise RejectedError(
            "REPLAY-14 figures-fit-the-block (rows out)",
            sequence_number=block.sequence_number,
            expected=rows,
            found=statistics.rows_out.total,
        )
    most = [_row_count(item) for item in event.query_inputs]
    if len(statistics.rows_read) != len(most) or any(
        (read or 0) > count for read, count in zip(statistics.rows_read, most, strict=False)
    ):
        raise RejectedError(
            "REPLAY-14 figures-fit-the-block (rows read)",
            sequence_number=block.sequence_number,
            expected=f"at most {most}",
            found=list(statistics.rows_read),
        )


def _row_count(read: ExecuteTransformInput) -> int:
    """Count the rows that an input has with the newest block that the step read."""
    last = read.prev_offset if read.new_offset is None else read.new_offset
    return 0 if last is None else last + 1
