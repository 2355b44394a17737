"""What became of rows and batches that were not taken."""

from collections.abc import Mapping
from dataclasses import replace

from odf_node.ports.quarantine import QuarantineFile, RowId, RowNote, SettledError, Settlement
from odf_protocol.did import DatasetId
from support.memory_store.tables import KeptDataset, MemoryPort, Tables


class MemoryQuarantine(MemoryPort):
    """``QuarantineStore`` in memory."""

    def list_row_notes(self, entry: int) -> dict[int, RowNote]:
        with self._tables.lock:
            kept = (each.row_notes[entry] for each in self._tables.datasets.values() if entry in each.row_notes)
            return dict(next(kept, {}))

    def mend_rows(self, dataset_id: DatasetId, mended: Mapping[RowId, Mapping[str, str | None]]) -> None:
        with self._tables.lock:
            kept = self._tables.get(dataset_id)
            for row in mended:
                _require_waiting(kept, row)
            for row, columns in mended.items():
                kept.row_notes.setdefault(row.entry, {})[row.row] = RowNote(columns=dict(columns))

    def settle(self, dataset_id: DatasetId, settlement: Settlement, quarantine: QuarantineFile | None = None) -> None:
        with self._tables.lock:
            kept = self._tables.get(dataset_id)
            settle(kept, settlement, None)
            if quarantine is not None:
                put_quarantine(self._tables, kept, quarantine)


def put_quarantine(tables: Tables, kept: KeptDataset, quarantine: QuarantineFile) -> None:
    """Add an entry; a waiting batch of the same bytes gives way to it."""
    if quarantine.batch is not None:
        kept.quarantine = [each for each in kept.quarantine if not _is_same_batch(each, quarantine)]
    kept.quarantine.append(replace(quarantine, id=tables.next_entry()))


def settle(kept: KeptDataset, settlement: Settlement, sequence_number: int | None) -> None:
    """Settle rows and batches, all or none of them.

    Raises:
        SettledError: One does not wait.
    """
    entries = {each.id: place for place, each in enumerate(kept.quarantine)}
    for row in settlement.rows:
        _require_waiting(kept, row)
    for entry in settlement.batches:
        batch = kept.quarantine[entries[entry]].batch if entry in entries else None
        if batch is None or batch.fate is not None:
            raise SettledError(entry)
    for row in settlement.rows:
        notes = kept.row_notes.setdefault(row.entry, {})
        note = notes.get(row.row, RowNote())
        notes[row.row] = replace(note, fate=settlement.fate, sequence_number=sequence_number)
    for entry in settlement.batches:
        each = kept.quarantine[entries[entry]]
        assert each.batch is not None
        kept.quarantine[entries[entry]] = replace(each, batch=replace(each.batch, file=None, fate=settlement.fate))


def _require_waiting(kept: KeptDataset, row: RowId) -> None:
    entry = next((each for each in kept.quarantine if each.id == row.entry), None)
    if entry is None or entry.batch is not None or not 1 <= row.row <= entry.row_count:
        raise SettledError(row)
    if kept.row_notes.get(row.entry, {}).get(row.row, RowNote()).fate is not None:
        raise SettledError(row)


def _is_same_batch(known: QuarantineFile, new: QuarantineFile) -> bool:
    assert new.batch is not None
    return known.batch is not None and known.batch.file is not None and known.batch.file == new.batch.file
