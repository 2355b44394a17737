"""Rows and batches that were not taken: what waits, what was fixed, and what is done with.

An *entry* is what one ingest set aside: rows of a batch whose others were taken, or a batch that waits whole. A row of
an entry has a *row id*: the entry's number and the row's place in the entry's file, from 1 (``3.17``). What is neither
sent again nor dropped waits; what is *settled* never waits again.

Source: clauses QUAR-1 to QUAR-5 in ``spec/quarantine.md``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from odf_protocol.events import SourceState

_ROW_ID = re.compile(r"([0-9]{1,15})\.([0-9]{1,15})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class RowId:
    """One row of quarantine: number of the entry, and place of the row in its file, from 1."""

    entry: int
    row: int

    @classmethod
    def find(cls, text: str) -> Self | None:
        """Read ``3.17``, None where the text is no such id."""
        found = _ROW_ID.fullmatch(text)
        return None if found is None else cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.entry}.{self.row}"


class Fate(StrEnum):
    """What became of a row or batch."""

    RESENT = "resent"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingBatch:
    """A batch of which nothing was taken.

    Attributes:
        file: The object with its bytes, as they were fetched and prepared; None once it is settled.
        why: The limit that it broke, for people.
        event_time: Of rows that have none.
        new_state: How far the source is with it, None for one that does not say, or that was pushed.
        known_state: How far the source was before.
        fate: What became of it, None while it waits.
    """

    file: Multihash | None
    why: str
    event_time: Timestamp
    new_state: "SourceState | None" = None
    known_state: "SourceState | None" = None
    fate: Fate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineFile:
    """An entry: a Parquet file of rows that an ingest set aside (ING-6).

    Attributes:
        dataset_id: Whose rows.
        sequence_number: Of the block that took the good rows, None when there were none to take.
        object_hash: Of the file; a batch without a bad row has an empty one.
        row_count: Rows of the file.
        source: What they came from, as a person would name it (URL, file name).
        created_at: When.
        push_source: Name of the push source that they came through, None where they were polled.
        resent_from: Where rows were sent again and failed again: record ``n`` of the file was the row ``n - 1`` of
            these.
        batch: The whole batch, where nothing of it was taken.
        id: Number of the entry, which the store gives.
    """

    dataset_id: DatasetId
    sequence_number: int | None
    object_hash: Multihash
    row_count: int
    source: str
    created_at: Timestamp
    push_source: str | None = None
    resent_from: tuple[RowId, ...] = ()
    batch: WaitingBatch | None = None
    id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNote:
    """What is known of a row beside its file.

    Attributes:
        columns: Names and texts that it was fixed to, None where it was not.
        fate: What became of it, None while it waits.
        sequence_number: Of the block with which it was sent again, None without one.
    """

    columns: Mapping[str, str | None] | None = None
    fate: Fate | None = None
    sequence_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRows:
    """Rows and batches that are done with, all or none of them."""

    fate: Fate
    rows: tuple[RowId, ...] = ()
    batches: tuple[int, ...] = ()


class SettledError(OdfError):
    """A row or batch of quarantine was sent again or dropped before, or is not there; nothing was done.

    Attributes:
        what: The row, or the number of the entry.
    """

    def __init__(self, what: RowId | int) -> None:
        self.what = what
        super().__init__(
            f"{what} of the quarantine does not wait any more: it was sent again or dropped; nothing was done"
        )
