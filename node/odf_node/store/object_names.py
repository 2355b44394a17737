"""Which objects rows name, and which of them need not be here (PART-4)."""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from odf_node.ports.objects import Arrivals, ObjectStore
from odf_node.store.database import StoreTables
from odf_node.store.rows import get_dataset_key
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash

_OTHERS: Final = (
    " UNION SELECT object_hash FROM quarantine_files UNION SELECT object_hash FROM merge_states"
    " UNION SELECT batch_hash FROM quarantine_files WHERE batch_hash IS NOT NULL"
)
_OBJECT: Final = "SELECT 1 FROM objects o JOIN datasets d ON d.key = o.dataset WHERE d.id = ? AND o.hash = ?"


class ObjectNameTables(StoreTables):
    """Names of objects in rows; whether a file is there, the object store knows."""

    def is_referenced_object(self, object_hash: Multihash) -> bool:
        """Say whether a committed row names the object."""
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
        """Return every object that a committed row names: what a sweep must keep."""
        return frozenset(self._list(_read_hash, f"SELECT hash FROM objects{_OTHERS}"))  # noqa: S608 - constants

    def list_expected_objects(self) -> frozenset[Multihash]:
        """Return every object that has to be here: all that rows name, but for those that are absent everywhere."""
        statement = f"SELECT hash FROM objects WHERE absent = 0{_OTHERS}"  # noqa: S608 - constants
        return frozenset(self._list(_read_hash, statement))

    def list_absent_objects(self, dataset_id: DatasetId) -> frozenset[Multihash]:
        """Return the objects of a dataset whose absence is no damage (PART-4); some may be here all the same."""
        with self._database.reading() as connection:
            key = get_dataset_key(connection, dataset_id)
            rows = connection.execute("SELECT hash FROM objects WHERE dataset = ? AND absent = 1", (key,))
            return frozenset(map(_read_hash, rows))

    def list_incomplete_datasets(self) -> frozenset[DatasetId]:
        """Return the datasets for which ``list_absent_objects`` returns something."""
        statement = "SELECT id FROM datasets WHERE key IN (SELECT dataset FROM objects WHERE absent = 1)"
        return frozenset(self._list(lambda row: DatasetId.decode(row[0]), statement))

    def has_dataset_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        """Say whether a block of the dataset names the object and its bytes came for this dataset (EX-81)."""
        statement = f"{_OBJECT} AND o.brought = 1"
        return self._find(bool, statement, dataset_id.to_bytes(), object_hash.to_bytes()) is not None

    def names_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        """Say whether a block of the dataset names the object, which the dataset need not have (EX-81)."""
        return self._find(bool, _OBJECT, dataset_id.to_bytes(), object_hash.to_bytes()) is not None

    def mark_absent(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        """Note that objects of a dataset may be absent from now on; those that it does not name are passed over."""
        with self._database.writing() as connection:
            key = get_dataset_key(connection, dataset_id)
            connection.executemany(
                "UPDATE objects SET absent = 1 WHERE dataset = ? AND hash = ?",
                ((key, object_hash.to_bytes()) for object_hash in hashes),
            )

    def mark_brought(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        """Note that objects of a dataset came for it and are durable; they may be absent all the same (PART-12)."""
        with self._database.writing() as connection:
            names = (object_hash.to_bytes() for object_hash in hashes)
            note_brought(connection, get_dataset_key(connection, dataset_id), names)

    def mark_present(self, dataset_id: DatasetId, hashes: Iterable[Multihash], *, brought: bool = True) -> None:
        """Note that objects of a dataset are durable and what its blocks say, so they have to be here from now on.

        Those not ``brought`` for it, and that it did not have before, are for this node alone (EX-82).
        """
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


BY_PULLS: Final = "pull"
"""Whoever brings what this node's operator asks for: a dataset is had from several places."""


def open_arrivals(store: ObjectNameTables, objects: ObjectStore, dataset_id: DatasetId, brought_by: str) -> Arrivals:
    """Open what somebody brings for a dataset; beside it only what the dataset itself has counts as here (EX-80)."""
    return objects.arrivals(
        dataset_id, brought_by, already=lambda object_hash: store.has_dataset_object(dataset_id, object_hash)
    )
