"""What ingests leave beside the chain: quarantine files and merge states."""

import sqlite3
from collections.abc import Iterator

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int, get_dataset_key
from odf_node.ports.commits import QuarantineFile
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp


class SqliteIngests(SqlitePort):
    """``IngestStore`` on SQLite."""

    def put_quarantine(self, quarantine: QuarantineFile) -> None:
        with self._database.writing() as connection:
            insert_quarantine(connection, get_dataset_key(connection, quarantine.dataset_id), quarantine)

    def iter_quarantine(self, dataset_id: DatasetId) -> Iterator[QuarantineFile]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT sequence_number, object_hash, row_count, source, created_at FROM quarantine_files"
                " WHERE dataset = ? ORDER BY id",
                (get_dataset_key(connection, dataset_id),),
            ).fetchall()
        return (_read_quarantine(dataset_id, row) for row in rows)

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


def insert_quarantine(connection: sqlite3.Connection, key: int, quarantine: QuarantineFile) -> None:
    """Add a quarantine file."""
    connection.execute(
        "INSERT INTO quarantine_files (dataset, sequence_number, object_hash, row_count, source, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            key,
            quarantine.sequence_number,
            quarantine.object_hash.to_bytes(),
            quarantine.row_count,
            quarantine.source,
            str(quarantine.created_at),
        ),
    )


def replace_merge_state(
    connection: sqlite3.Connection, key: int, block_hash: Multihash, object_hash: Multihash
) -> None:
    """Keep one merge state per dataset: the newest."""
    connection.execute(
        "INSERT OR REPLACE INTO merge_states (dataset, block_hash, object_hash) VALUES (?, ?, ?)",
        (key, block_hash.to_bytes(), object_hash.to_bytes()),
    )


def _read_quarantine(dataset_id: DatasetId, row: tuple[object, ...]) -> QuarantineFile:
    number, object_hash, row_count, source, created_at = row
    return QuarantineFile(
        dataset_id=dataset_id,
        sequence_number=None if number is None else as_int(number),
        object_hash=Multihash.decode(as_bytes(object_hash)),
        row_count=as_int(row_count),
        source=str(source),
        created_at=Timestamp.parse(str(created_at)),
    )
