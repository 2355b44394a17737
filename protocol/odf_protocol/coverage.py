"""Whether a derivative is its declared query over the whole of its inputs, each row once.

Each step of a chain may be just what its query gives, and the dataset still not be what its query says: steps may leave
input rows out, take them twice, or have been made by a query that is not in force any more. The chain rules allow it,
as ODF does; what is known of it is folded here along the chain, so that whoever shows trust can say so. For lists of
datasets, `decode_progress` reads it from the stored state without what rules and events need.

Source: clauses PLAN-9 to PLAN-11 in ``spec/transform.md``.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from odf_protocol.errors import CorruptError, OdfError
from odf_protocol.timestamp import Timestamp

MAX_LAPSES: Final = 4
"""Lapses that are remembered, the newest ones: bounds the state of a chain, and one is enough to reject it."""


@dataclass(frozen=True, slots=True)
class Lapse:
    """A step that takes an input up elsewhere than where the last step over it ended.

    Attributes:
        sequence_number: Block of the step.
        dataset_id: The input.
        expected: Last row taken before; None while there was none.
        found: Last row before the step, as the step says.
    """

    sequence_number: int
    dataset_id: str
    expected: int | None
    found: int | None

    def describe(self) -> str:
        """Say in words what is missing, or twice there."""
        expected, found = (-1 if row is None else row for row in (self.expected, self.found))
        if found > expected:
            return f"block {self.sequence_number} leaves out rows {expected + 1:,} to {found:,} of {self.dataset_id}"
        if found < expected:
            return f"block {self.sequence_number} takes rows {found + 1:,} to {expected:,} of {self.dataset_id} again"
        return f"block {self.sequence_number} takes up {self.dataset_id} at another block"


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a chain says so far about queries and inputs of its steps.

    Attributes:
        lapses: The newest ones.
        earlier_queries: Queries with steps before the one in force.
        first_row: First row that the query in force made, or will make.
        has_step: The query in force has made a step.
    """

    lapses: tuple[Lapse, ...] = ()
    earlier_queries: int = 0
    first_row: int = 0
    has_step: bool = False

    def with_query(self, next_row: int) -> Self:
        """Go on after a SetTransform; ``next_row`` is the number of the next row."""
        return replace(self, earlier_queries=self.earlier_queries + self.has_step, first_row=next_row, has_step=False)

    def with_step(self, lapses: tuple[Lapse, ...]) -> Self:
        """Go on after an ExecuteTransform."""
        return replace(self, lapses=(*self.lapses, *lapses)[-MAX_LAPSES:], has_step=True)

    @property
    def is_late(self) -> bool:
        """The query in force was declared after all steps (PLAN-11)."""
        return self.earlier_queries > 0 and not self.has_step

    def describe_lapses(self, *, since: int = 0) -> str:
        """Say which rows are missing or twice there, by steps in block ``since`` or later; empty where none are."""
        return "; ".join(lapse.describe() for lapse in self.lapses if lapse.sequence_number >= since)

    def describe(self) -> str:
        """Say what makes the dataset less than its declared query over the whole input; empty where nothing does."""
        parts = [lapse.describe() for lapse in self.lapses]
        if self.earlier_queries:
            who = "an earlier query" if self.earlier_queries == 1 else f"{self.earlier_queries} earlier queries"
            if self.is_late:
                made = f"no step is of the query in force, all are of {who}"
            elif self.first_row:
                made = f"rows 0 to {self.first_row - 1:,} are of {who}"
            else:
                made = f"{who} read the inputs first"
            parts.insert(0, made)
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class ChainProgress:
    """What a dataset holds.

    Attributes:
        row_count: Rows from offset 0 on.
        watermark: Event time that is complete, None while none was stated.
        partial: What makes it less than its declared query over the whole input, in words (PLAN-9, PLAN-10).
    """

    row_count: int
    watermark: Timestamp | None
    partial: str = ""


def decode_progress(data: bytes) -> ChainProgress:
    """Read them from a stored chain state; the rest is not looked at.

    Raises:
        CorruptError: They are not there as ``ChainState.to_bytes`` writes them.
    """
    try:
        stored = json.loads(data)
        row_count = range(stored.get("last_offset", -1) + 1).stop  # a range has whole numbers only
        watermark = stored.get("watermark")
        partial = _read_coverage(stored.get("coverage", {})).describe()
        return ChainProgress(row_count, None if watermark is None else Timestamp.parse(watermark), partial)
    except (ValueError, TypeError, AttributeError, OdfError) as error:
        raise CorruptError(f"stored chain state: {error}") from error


def _read_coverage(stored: dict[str, Any]) -> Coverage:
    return Coverage(**{**stored, "lapses": tuple(Lapse(**each) for each in stored.get("lapses", ()))})
