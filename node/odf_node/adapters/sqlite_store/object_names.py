"""Which objects rows name, and which of them need not be here (PART-4)."""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.rows import get_dataset_key
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash

_OTHERS: Final = (
    " UNION SELECT object_hash FROM quarantine_files UNION SELECT object_hash FROM merge_states"
    " UNION SELECT batch_hash FROM quarantine_files WHERE batch_hash IS NOT NULL"
)
_OBJECT: Final = "SELECT 1 FROM objects o JOIN datasets d ON d.key = o.dataset WHERE d.id = ? AND o.hash = ?"


class SqliteObjectNames(SqlitePort):
    """``ObjectNames`` on SQLite."""

    def is_referenced_object(self, object_hash: Multihash) -> bool:
        wanted = object_hash.to_bytes()
        found = self._find(
            lambda row: bool(row[0]),
            "SELECT EXISTS (SELECT 1 FROM objects WHERE hash = ?)"
            " OR EXISTS (SELECT 1 FROM quarantine_files WHERE object_hash = ?)"
            " OR EXISTS (SELECT 1 FROM quarantine_files WHERE batch_hash = ?)"
            " OR EXISTS (SELECT 1 FROM merge_states WHERE object_hash = ?)",
            *[wanted] * 4,
        )
        return bool(found)

    def list_referenced_objects(self) -> frozenset[Multihash]:
        return frozenset(self._list(_read_hash, f"SELECT hash FROM objects{_OTHERS}"))  # noqa: S608 - constants

    def list_expected_objects(self) -> frozenset[Multihash]:
        statement = f"SELECT hash FROM objects WHERE absent = 0{_OTHERS}"  # noqa: S608 - constants
        return frozenset(self._list(_read_hash, statement))

    def list_absent_objects(self, dataset_id: DatasetId) -> frozenset[Multihash]:
        with self._database.reading() as connection:
            key = get_dataset_key(connection, dataset_id)
            rows = connection.execute("SELECT hash FROM objects WHERE dataset = ? AND absent = 1", (key,))
            return frozenset(map(_read_hash, rows))

    def list_incomplete_datasets(self) -> frozenset[DatasetId]:
        statement = "SELECT id FROM datasets WHERE key IN (SELECT dataset FROM objects WHERE absent = 1)"
        return frozenset(self._list(lambda row: DatasetId.decode(row[0]), statement))

    def has_dataset_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        statement = f"{_OBJECT} AND o.brought = 1"
        return self._find(bool, statement, dataset_id.to_bytes(), object_hash.to_bytes()) is not None

    def names_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        return self._find(bool, _OBJECT, dataset_id.to_bytes(), object_hash.to_bytes()) is not None

    def mark_absent(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            connection.executemany(
                "UPDATE objects SET absent = 1 WHERE dataset = ? AND hash = ?",
                ((key, object_hash.to_bytes()) for object_hash in hashes),
            )

    def mark_brought(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        with self._database.writing() as connection:
            names = (object_hash.to_bytes() for object_hash in hashes)
            note_brought(connection, get_dataset_key(connection, dataset_id), names)

    def mark_present(self, dataset_id: DatasetId, hashes: Iterable[Multihash], *, brought: bool = True) -> None:
        with self._database.writing() as connection:
            note_present(connection, get_dataset_key(connection, dataset_id), hashes, brought=brought)


def note_brought(connection: sqlite3.Connection, key: int, names: Iterable[bytes]) -> None:
    """Note inside a transaction that the bytes of objects came for a dataset, which has them from now on (EX-81)."""
    connection.executemany(
        "UPDATE objects SET brought = 1 WHERE dataset = ? AND hash = ? AND brought = 0", ((key, name) for name in names)
    )


def note_present(
    connection: sqlite3.Connection, key: int, hashes: Iterable[Multihash], *, brought: bool = True
) -> None:
    """Note inside a transaction that objects of a dataset are durable and have to be here."""
    names = [object_hash.to_bytes() for object_hash in hashes]
    connection.executemany(
        "UPDATE objects SET absent = 0 WHERE dataset = ? AND hash = ? AND absent = 1", ((key, name) for name in names)
    )
    if brought:
        note_brought(connection, key, names)


def _read_hash(row: tuple[Any, ...]) -> Multihash:
    return Multihash.decode(row[0])
