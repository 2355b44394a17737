"""Slices of a chain whose rows were checked, and blocks of it that take back what is not there; loads no arrays.

Source: clauses ROWS-12 to ROWS-14 in ``spec/extensions/acceptance.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_protocol.errors import RejectedError
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    from odf_protocol.changelog_balance import UnsoundRows

RULE: Final = "ROWS-12 nothing-is-taken-back-that-is-not-current"


class Excuse(Enum):
    """What a block may take back that is not there (ROWS-13)."""

    NONE = "none"
    TOO_OFTEN = "rows that were given, and taken back before"
    ALL = "whatever its source or input does"


@dataclass(frozen=True, slots=True)
class ChainSlice:
    """A slice whose rows were checked.

    Attributes:
        sequence_number: Of the block that adds it.
        object_hash: Names it.
        path: Has it.
        rows: How many it has.
        first_offset: Of them.
        taken: How many of them take another one back; None: nobody counted.
        excuse: What of that need not be there.
    """

    sequence_number: int
    object_hash: Multihash
    path: Path
    rows: int
    first_offset: int
    taken: int | None = None
    excuse: Excuse = Excuse.NONE


@dataclass(frozen=True, slots=True)
class UnsoundBlock:
    """A block that takes back what is not there; ``values`` are those of its first such row, as a person reads them."""

    where: ChainSlice
    rows: "UnsoundRows"
    values: str = ""

    @property
    def is_excused(self) -> bool:
        """Say whether it is no reason to reject the block."""
        excuse = self.where.excuse
        return excuse is Excuse.ALL or (excuse is Excuse.TOO_OFTEN and not self.rows.never_given)

    def explain(self) -> str:
        """Name the row, and say how many there are."""
        more = f", and {self.rows.count - 1:,} more" if self.rows.count > 1 else ""
        return f"offset {self.where.first_offset + self.rows.row}, which takes back {self.values}{more}"

    def as_error(self) -> RejectedError:
        """Give the error that rejects the block."""
        return RejectedError(
            RULE,
            sequence_number=self.where.sequence_number,
            expected="that what is retracted or corrected was given and not yet taken back",
            found=self.explain(),
        )


def describe_unsound(blocks: Sequence[UnsoundBlock]) -> str:
    """Say in words what is weak about a dataset that takes back what is not there, for which it is excused."""
    count, first = sum(each.rows.count for each in blocks), blocks[0].where.sequence_number
    never = sum(each.rows.never_given for each in blocks)
    rows = "1 row" if count == 1 else f"{count:,} rows"
    return f"takes back {rows} too many, from block {first} on{f', {never:,} of them never given' if never else ''}"
