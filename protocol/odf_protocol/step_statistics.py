"""What a step of a derivative did, in figures: for those who run it, and for those who re-execute it.

All figures but times follow from the chains of the inputs, the query and the rows of the step, so re-execution gives
the same ones. Times are what its writer measured; nobody compares them.

Source: clauses REPLAY-13 and REPLAY-14 in ``spec/extensions/replay.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from odf_protocol.block import Block
from odf_protocol.errors import RejectedError
from odf_protocol.events import ExecuteTransform, ExecuteTransformInput


@dataclass(frozen=True, slots=True)
class RowsByOperation:
    """Rows that a step gave: new, taken back, and both halves of corrections."""

    append: int = 0
    retract: int = 0
    correct_from: int = 0
    correct_to: int = 0

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


@dataclass(frozen=True, slots=True)
class StateSize:
    """What a step has to know of what came before it: rows of whole inputs, and bytes of their files and checkpoints.

    Bytes are those that blocks state, not those that a node's own copies take.
    """

    rows: int = 0
    size_bytes: int = 0


NO_STATE: Final = StateSize()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatistics:
    """What one step did.

    Attributes:
        rows_read: Of each input, in the order of SetTransform; None: nobody counted.
        rows_out: Rows of the step.
        late_rows: Of the inputs, that came too late to change what was given already.
        state_before: What the step had to know.
        state_after: What the next one will have to know.
        milliseconds: What took how long, by the words of the writer; a claim that nobody compares.
    """

    rows_read: tuple[int | None, ...]
    rows_out: RowsByOperation
    late_rows: int
    state_before: StateSize = NO_STATE
    state_after: StateSize = NO_STATE
    milliseconds: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values, under the names that records use."""
        rows, before, after = self.rows_out, self.state_before, self.state_after
        return {
            "rowsRead": list(self.rows_read),
            "rowsOut": {
                "append": rows.append,
                "retract": rows.retract,
                "correctFrom": rows.correct_from,
                "correctTo": rows.correct_to,
            },
            "lateRows": self.late_rows,
            "stateBefore": {"rows": before.rows, "bytes": before.size_bytes},
            "stateAfter": {"rows": after.rows, "bytes": after.size_bytes},
            "milliseconds": dict(self.milliseconds),
        }

    @property
    def total_read(self) -> int:
        """Rows read of all inputs."""
        return sum(count or 0 for count in self.rows_read)

    @property
    def total_ms(self) -> int:
        """All that took time, in milliseconds."""
        return sum(self.milliseconds.values())


def check_statistics_fit(statistics: StepStatistics, block: Block) -> None:
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
