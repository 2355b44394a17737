"""What a merge gives back."""

from dataclasses import dataclass
from typing import Any

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = 0, 1, 2, 3  # Source: ODF OperationType

OP = "op"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows that a merge cannot take.

    Attributes:
        rows: Data frame of staged rows.
        message: Why, for all of them.
        column_names: Whose values are at fault.
        code: A word for programs (ING-6).
    """

    rows: Any
    message: str
    column_names: tuple[str, ...]
    code: str


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """Result of a merge, as data frames that are not yet computed.

    Attributes:
        changes: `op` and the value columns, sorted in the order of offsets.
        state: Value columns of the new state, sorted by key; None if the strategy keeps none.
        refusals: Rows that were left out.
    """

    changes: Any
    state: Any | None
    refusals: tuple[Refusal, ...] = ()
