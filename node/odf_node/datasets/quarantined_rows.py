"""Rows of quarantine as people work with them: what was sent, what is wrong, what it was fixed to, what became of it.

Source: clauses QUAR-1 and QUAR-4 in ``spec/quarantine.md`` and ``spec/plug-ins/corrections.md``.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from odf_node.datasets.row_files import iter_given_names, iter_kept
from odf_node.errors import UsageError
from odf_node.ports.objects import StoredObjects
from odf_node.records.datasets import DatasetRecord
from odf_node.records.quarantine import QuarantineFile, RowId, RowNote
from odf_node.store import MetadataStore
from odf_protocol.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class KeptRow:
    """One row.

    Attributes:
        id: Of the row.
        entry: It belongs to.
        record: Its number in the batch, None for the result of a query.
        line: Where it began, None where a source has no lines.
        stage: That rejected it.
        original: Its text, None where that is no UTF-8.
        original_bytes: Its bytes instead.
        given: Names and texts of its columns as they were sent; empty where it cannot be taken apart.
        errors: As in the file (VALID-8).
        note: What is known beside.
    """

    id: RowId
    entry: QuarantineFile
    record: int | None
    line: int | None
    stage: str
    original: str | None
    original_bytes: bytes | None
    given: Mapping[str, str | None]
    errors: list[dict[str, str | None]]
    note: RowNote

    @property
    def columns(self) -> Mapping[str, str | None]:
        """What it is sent again with: what it was fixed to, else what was sent."""
        return self.given if self.note.columns is None else self.note.columns

    @property
    def waits(self) -> bool:
        """Whether it can be fixed, sent again or dropped by itself."""
        return self.note.fate is None and self.entry.batch is None

    @property
    def state(self) -> str:
        """Say in a word how it stands."""
        if self.entry.batch is not None:
            return "batch waits" if self.entry.batch.fate is None else self.entry.batch.fate.value
        if self.note.fate is not None:
            return self.note.fate.value
        return "waits" if self.note.columns is None else "mended"

    @property
    def resent_from(self) -> RowId | None:
        """The row that it was before it was sent again, None where it came from a source."""
        before = self.entry.resent_from
        return before[self.record - 1] if before and self.record is not None else None


@dataclass(frozen=True, slots=True)
class QuarantineReader:
    """Reads entries and their rows."""

    store: MetadataStore
    objects: StoredObjects

    def list_entries(self, record: DatasetRecord) -> list[QuarantineFile]:
        """Return the entries of a dataset, oldest first."""
        return list(self.store.iter_quarantine(record.id))

    def require_single(self, record: DatasetRecord, rows: Iterable[RowId]) -> None:
        """Reject rows of a batch that waits whole: what can be done is done with the batch.

        Raises:
            UsageError: One is such.
        """
        whole = {each.id for each in self.list_entries(record) if each.batch is not None and each.batch.fate is None}
        found = next((row for row in rows if row.entry in whole), None)
        if found is not None:
            raise UsageError(
                f"{found} is of batch {found.entry}, which waits whole: 'odf-node quarantine resend {record.name}"
                f" {found.entry} --release' lets it pass and sets its bad rows aside to be fixed, --file FILE in place"
                f" of --release sends a fixed file, and 'drop' gives it up"
            )

    def require_known(self, record: DatasetRecord, entries: Iterable[int], rows: Iterable[RowId]) -> None:
        """Reject what was never set aside, or was sent again as part of another entry.

        Raises:
            NotFoundError: There is no such entry or row.
        """
        counts = {each.id: each.row_count for each in self.list_entries(record)}
        unknown = [str(entry) for entry in entries if entry not in counts]
        unknown += [str(row) for row in rows if not 1 <= row.row <= counts.get(row.entry, 0)]
        if unknown:
            raise NotFoundError(
                f"quarantine of {record.name} has no {unknown[0]}; 'odf-node quarantine list {record.name}' shows its "
                "entries (a batch that was sent again and rejected has a new number)"
            )

    def count_all_waiting(self, record: DatasetRecord) -> tuple[int, int]:
        """Count single rows that wait, and batches that wait whole."""
        entries = self.list_entries(record)
        rows = sum(self.count_waiting(each) for each in entries if each.batch is None)
        return rows, sum(each.batch is not None and each.batch.fate is None for each in entries)

    def count_waiting(self, entry: QuarantineFile) -> int:
        """Count the rows of an entry that wait; of a batch that waits, all that were found bad."""
        if entry.batch is not None:
            return entry.row_count if entry.batch.fate is None else 0
        notes = self.store.list_row_notes(entry.id)
        return entry.row_count - sum(note.fate is not None for note in notes.values())

    def iter_rows(
        self, record: DatasetRecord, *, entries: Collection[int] = (), rows: Collection[RowId] = ()
    ) -> Iterator[KeptRow]:
        """Read rows, oldest entry first.

        Args:
            record: The dataset.
            entries: Those of these entries,
            rows: and these; all where neither is named.
        """
        wanted = {row.entry for row in rows}
        for entry in self.store.iter_quarantine(record.id):
            is_whole = entry.id in entries or not (entries or rows)
            if not is_whole and entry.id not in wanted:
                continue
            notes = self.store.list_row_notes(entry.id)
            kept = iter_kept(self.objects.get_path(entry.object_hash))
            for place, found in enumerate(kept, 1):
                row = RowId(entry.id, place)
                if is_whole or row in rows:
                    yield _read_row(row, entry, found, notes.get(place, RowNote()))

    def iter_column_names(self, record: DatasetRecord, entries: Collection[int]) -> Iterator[str]:
        """Yield the names of columns as senders gave them, oldest entry first; some more than once."""
        for entry in self.store.iter_quarantine(record.id):
            if entry.id in entries:
                yield from iter_given_names(self.objects.get_path(entry.object_hash))


def _read_row(row: RowId, entry: QuarantineFile, found: dict[str, Any], note: RowNote) -> KeptRow:
    return KeptRow(
        id=row,
        entry=entry,
        record=found["record"],
        line=found["line"],
        stage=found["stage"],
        original=found["original"],
        original_bytes=found["original_bytes"],
        given={each["name"]: each["value"] for each in found["columns"]},
        errors=found["errors"],
        note=note,
    )
