"""Look-ups for serving chains to others."""

from collections.abc import Iterator
from typing import Final

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.rows import DATASET_COLUMNS, as_bytes, as_int, read_dataset
from odf_node.ports.access import ReadGrants
from odf_node.ports.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.names import DatasetName

# Records may have megabytes: a page bounds what is in memory, and how long a snapshot is held.
_PAGE_RECORDS: Final = 64

_BY_NAME: Final = "name = ? COLLATE NOCASE"
"""Names are ASCII, so this is the comparison of NAME-3; an index knows it."""


class ServingMethods:
    """The methods of ``ServedChains``."""

    _database: Database

    def find_readable(self, which: DatasetId | DatasetName, reads: ReadGrants) -> DatasetRecord | None:
        """See ``ServedChains``."""
        named, value = ("id = ?", which.to_bytes()) if isinstance(which, DatasetId) else (_BY_NAME, which.text)
        granted = ", ".join("?" * len(reads.datasets))
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT {DATASET_COLUMNS} FROM datasets WHERE {named}"  # noqa: S608 - constants
                f" AND (? OR (published AND ?) OR id IN ({granted}))",
                (value, reads.everything, reads.published, *(granted_id.to_bytes() for granted_id in reads.datasets)),
            ).fetchone()
        return None if row is None else read_dataset(row)

    def has_dataset_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        """See ``ServedChains``."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM objects o JOIN datasets d ON d.key = o.dataset WHERE d.id = ? AND o.hash = ?",
                (dataset_id.to_bytes(), object_hash.to_bytes()),
            ).fetchone()
            return row is not None

    def iter_replay_records(self, dataset_id: DatasetId, *, after: int, upto: int) -> Iterator[tuple[int, bytes]]:
        """See ``ServedChains``."""
        last = after
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(
                    "SELECT r.sequence_number, r.raw FROM replay_records r JOIN datasets d ON d.key = r.dataset"
                    " WHERE d.id = ? AND r.sequence_number > ? AND r.sequence_number <= ?"
                    " ORDER BY r.sequence_number LIMIT ?",
                    (dataset_id.to_bytes(), last, upto, _PAGE_RECORDS),
                ).fetchall()
            for number, raw in rows:
                last = as_int(number)
                yield last, as_bytes(raw)
            if len(rows) < _PAGE_RECORDS:
                return
