"""Entries of quarantine, and what became of their rows."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from odf_node.records.quarantine import Fate, QuarantineFile, RowId, RowNote, SettledError, SettledRows, WaitingBatch
from odf_node.store.database import StoreTables
from odf_node.store.rows import as_bytes, as_int, get_dataset_key
from odf_protocol.did import DatasetId
from odf_protocol.events import SourceState
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

QUARANTINE_COLUMNS: Final = (
    "id, sequence_number, object_hash, row_count, source, created_at, push_source, resent_from, batch, batch_hash, fate"
)

# A row of an entry of the dataset that is no batch; that it waits is for the next statement.
_HAS_ROW: Final = (
    "SELECT 1 FROM quarantine_files WHERE id = ? AND dataset = ? AND batch IS NULL AND ? BETWEEN 1 AND row_count"
)


class QuarantineStore(StoreTables):
    """What became of rows and batches that were not taken."""

    def list_row_notes(self, entry: int) -> dict[int, RowNote]:
        """Return what is known of the rows of an entry, by their places; those that only wait are left out."""

        def read(found: tuple[Any, ...]) -> tuple[int, RowNote]:
            row, columns, fate, number = found
            reported = None if columns is None else json.loads(columns)
            return row, RowNote(columns=reported, fate=None if fate is None else Fate(fate), sequence_number=number)

        statement = "SELECT row, columns, fate, sequence_number FROM quarantine_rows WHERE entry = ?"
        return dict(self._list(read, statement, entry))

    def fix_rows(self, dataset_id: DatasetId, fixed: Mapping[RowId, Mapping[str, str | None]]) -> None:
        """Keep what rows were fixed to, for all or none of them.

        Raises:
            SettledError: One is settled, or is none of this dataset's.
        """
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            for row, columns in fixed.items():
                _note(connection, key, row, columns=json.dumps(dict(columns), ensure_ascii=False))

    def settle(self, dataset_id: DatasetId, settlement: SettledRows, quarantine: QuarantineFile | None = None) -> None:
        """Settle rows and batches without a block, and keep what failed again; a commit does both with its block.

        Raises:
            SettledError: One is settled already, or is none of this dataset's; nothing was done.
        """
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            insert_settlement(connection, key, settlement, None)
            if quarantine is not None:
                insert_quarantine(connection, key, quarantine)


def insert_settlement(
    connection: sqlite3.Connection, key: int, settlement: SettledRows, sequence_number: int | None
) -> None:
    """Settle rows and batches inside a transaction.

    Raises:
        SettledError: One does not wait; the transaction is to be given up.
    """
    for row in settlement.rows:
        _note(connection, key, row, fate=settlement.fate.value, sequence_number=sequence_number)
    for entry in settlement.batches:
        done = connection.execute(
            "UPDATE quarantine_files SET fate = ?, batch_hash = NULL"
            " WHERE id = ? AND dataset = ? AND batch IS NOT NULL AND fate IS NULL",
            (settlement.fate.value, entry, key),
        )
        if done.rowcount != 1:
            raise SettledError(entry)


def insert_quarantine(connection: sqlite3.Connection, key: int, quarantine: QuarantineFile) -> None:
    """Add an entry; a waiting batch of the same bytes gives way to it."""
    batch = quarantine.batch
    if batch is not None and batch.file is not None:
        connection.execute(
            "DELETE FROM quarantine_files WHERE dataset = ? AND batch_hash = ?", (key, batch.file.to_bytes())
        )
    connection.execute(
        "INSERT INTO quarantine_files (dataset, sequence_number, object_hash, row_count, source, created_at,"
        " push_source, resent_from, batch, batch_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            quarantine.sequence_number,
            quarantine.object_hash.to_bytes(),
            quarantine.row_count,
            quarantine.source,
            str(quarantine.created_at),
            quarantine.push_source,
            " ".join(map(str, quarantine.resent_from)),
            None if batch is None else _write_batch(batch),
            None if batch is None or batch.file is None else batch.file.to_bytes(),
        ),
    )


def read_quarantine(dataset_id: DatasetId, row: tuple[object, ...]) -> QuarantineFile:
    """Read a row of ``QUARANTINE_COLUMNS``."""
    entry, number, object_hash, row_count, source, created_at, push_source, resent_from, batch, batch_hash, fate = row
    return QuarantineFile(
        dataset_id=dataset_id,
        sequence_number=None if number is None else as_int(number),
        object_hash=Multihash.decode(as_bytes(object_hash)),
        row_count=as_int(row_count),
        source=str(source),
        created_at=Timestamp.parse(str(created_at)),
        push_source=None if push_source is None else str(push_source),
        resent_from=tuple(each for text in str(resent_from).split() if (each := RowId.find(text)) is not None),
        batch=None if batch is None else _read_batch(json.loads(str(batch)), batch_hash, fate),
        id=as_int(entry),
    )


def _note(connection: sqlite3.Connection, key: int, row: RowId, **values: object) -> None:
    if connection.execute(_HAS_ROW, (row.entry, key, row.row)).fetchone() is None:
        raise SettledError(row)
    names, marks = ", ".join(values), ", ".join("?" for _ in values)
    changes = ", ".join(f"{name} = excluded.{name}" for name in values)
    done = connection.execute(
        f"INSERT INTO quarantine_rows (entry, row, {names}) VALUES (?, ?, {marks})"  # noqa: S608 - names of ours
        f" ON CONFLICT (entry, row) DO UPDATE SET {changes} WHERE fate IS NULL",
        (row.entry, row.row, *values.values()),
    )
    if done.rowcount != 1:
        raise SettledError(row)


def _write_batch(batch: WaitingBatch) -> str:
    return json.dumps(
        {
            "why": batch.why,
            "event_time": str(batch.event_time),
            "new_state": None if batch.new_state is None else asdict(batch.new_state),
            "known_state": None if batch.known_state is None else asdict(batch.known_state),
        }
    )


def _read_batch(values: dict[str, Any], file: object, fate: object) -> WaitingBatch:
    new_state, known_state = values["new_state"], values["known_state"]
    return WaitingBatch(
        file=None if file is None else Multihash.decode(as_bytes(file)),
        why=values["why"],
        event_time=Timestamp.parse(values["event_time"]),
        new_state=None if new_state is None else SourceState(**new_state),
        known_state=None if known_state is None else SourceState(**known_state),
        fate=None if fate is None else Fate(str(fate)),
    )
