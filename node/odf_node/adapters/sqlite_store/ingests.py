"""What ingests leave beside the chain: quarantine files and merge states."""

import sqlite3
from collections.abc import Iterator

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.quarantine import (
    QUARANTINE_COLUMNS,
    insert_quarantine,
    insert_settlement,
    read_quarantine,
)
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int, get_dataset_key
from odf_node.ports.ingests import MAX_KEPT_KEYS, IngestKey, KeptAnswer, KeyInUseError
from odf_node.ports.quarantine import QuarantineFile, Settlement
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash


class SqliteIngests(SqlitePort):
    """``IngestStore`` on SQLite."""

    def put_quarantine(self, quarantine: QuarantineFile) -> None:
        with self._database.writing() as connection:
            insert_quarantine(connection, get_dataset_key(connection, quarantine.dataset_id), quarantine)

    def iter_quarantine(self, dataset_id: DatasetId) -> Iterator[QuarantineFile]:
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {QUARANTINE_COLUMNS} FROM quarantine_files WHERE dataset = ? ORDER BY id",  # noqa: S608 - a constant
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
        return (read_quarantine(dataset_id, row) for row in rows)

    def list_datasets_with_quarantine(self) -> frozenset[DatasetId]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT id FROM datasets WHERE key IN (SELECT dataset FROM quarantine_files)")
            return frozenset(DatasetId.decode(as_bytes(row[0])) for row in rows)

    def find_answer(self, dataset_id: DatasetId, caller: str, key: str) -> KeptAnswer | None:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT i.asked, i.sequence_number, i.answer FROM ingest_keys i JOIN datasets d ON d.key = i.dataset"
                " WHERE d.id = ? AND i.caller = ? AND i.key = ?",
                (dataset_id.to_bytes(), caller, key),
            ).fetchone()
        if row is None:
            return None
        asked = IngestKey(caller=caller, text=key, asked=as_bytes(row[0]))
        return KeptAnswer(key=asked, sequence_number=as_int(row[1]), text=str(row[2]))

    def put_answer(
        self,
        dataset_id: DatasetId,
        answer: KeptAnswer,
        quarantine: QuarantineFile | None = None,
        settlement: Settlement | None = None,
    ) -> None:
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            insert_answer(connection, key, answer)
            if settlement is not None:
                insert_settlement(connection, key, settlement, None)
            if quarantine is not None:
                insert_quarantine(connection, key, quarantine)

    def find_batch_size(self, dataset_id: DatasetId, push_source: str | None) -> int | None:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT b.row_count FROM batch_sizes b JOIN datasets d ON d.key = b.dataset"
                " WHERE d.id = ? AND b.push_source = ?",
                (dataset_id.to_bytes(), push_source or ""),
            ).fetchone()
            return None if row is None else as_int(row[0])

    def put_batch_size(self, dataset_id: DatasetId, push_source: str | None, row_count: int) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO batch_sizes (dataset, push_source, row_count) VALUES (?, ?, ?)",
                (get_dataset_key(connection, dataset_id), push_source or "", row_count),
            )

    def find_fetched_place(self, dataset_id: DatasetId, state: str) -> bytes | None:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT f.place FROM fetched_places f JOIN datasets d ON d.key = f.dataset"
                " WHERE d.id = ? AND f.state = ?",
                (dataset_id.to_bytes(), state),
            ).fetchone()
            return None if row is None else as_bytes(row[0])

    def find_merge_state(self, dataset_id: DatasetId, block_hash: Multihash) -> Multihash | None:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT m.object_hash FROM merge_states m JOIN datasets d ON d.key = m.dataset"
                " WHERE d.id = ? AND m.block_hash = ?",
                (dataset_id.to_bytes(), block_hash.to_bytes()),
            ).fetchone()
            return None if row is None else Multihash.decode(as_bytes(row[0]))

    def find_newest_merge_state(self, dataset_id: DatasetId) -> Multihash | None:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT m.object_hash FROM merge_states m JOIN datasets d ON d.key = m.dataset WHERE d.id = ?",
                (dataset_id.to_bytes(),),
            ).fetchone()
            return None if row is None else Multihash.decode(as_bytes(row[0]))


def insert_answer(connection: sqlite3.Connection, key: int, answer: KeptAnswer) -> None:
    """Keep what was answered under a key inside a transaction, and forget the oldest keys of the caller.

    Raises:
        KeyInUseError: There is an answer under it; the transaction is to be given up.
    """
    asked = answer.key
    done = connection.execute(
        "INSERT INTO ingest_keys (dataset, caller, key, asked, sequence_number, answer) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (dataset, caller, key) DO NOTHING",
        (key, asked.caller, asked.text, asked.asked, answer.sequence_number, answer.text),
    )
    if done.rowcount != 1:
        raise KeyInUseError(asked.text)
    connection.execute(
        "DELETE FROM ingest_keys WHERE dataset = ? AND caller = ? AND id <= (SELECT id FROM ingest_keys"
        " WHERE dataset = ? AND caller = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (key, asked.caller, key, asked.caller, MAX_KEPT_KEYS),
    )


def replace_merge_state(
    connection: sqlite3.Connection, key: int, block_hash: Multihash, object_hash: Multihash
) -> None:
    """Keep one merge state per dataset: the newest."""
    connection.execute(
        "INSERT OR REPLACE INTO merge_states (dataset, block_hash, object_hash) VALUES (?, ?, ?)",
        (key, block_hash.to_bytes(), object_hash.to_bytes()),
    )
