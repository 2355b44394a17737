"""Look-ups for serving chains to others."""

from collections.abc import Iterator
from dataclasses import replace
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

_BY_NAME: Final = "(name = ? COLLATE NOCASE OR asked_name = ? COLLATE NOCASE)"
"""Names are ASCII, so this is the comparison of NAME-3; indexes know it."""


class ServingMethods:
    """The methods of ``ServedChains``."""

    _database: Database

    def find_readable(self, which: DatasetId | DatasetName, reads: ReadGrants) -> DatasetRecord | None:
        """See ``ServedChains``."""
        values: list[object]
        if isinstance(which, DatasetId):
            named, values = "id = ?", [which.to_bytes()]
        else:
            named, values = _BY_NAME, [which.text, which.text]
        readable, grants = _readable(reads)
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT asked_name, {DATASET_COLUMNS} FROM datasets WHERE {named} AND {readable}"  # noqa: S608 - constants
                " ORDER BY asked_name IS NOT NULL, key LIMIT 1",
                (*values, *grants),
            ).fetchone()
        return None if row is None else _as_known(row, reads)

    def names_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        """See ``ServedChains``."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM objects o JOIN datasets d ON d.key = o.dataset WHERE d.id = ? AND o.hash = ?",
                (dataset_id.to_bytes(), object_hash.to_bytes()),
            ).fetchone()
            return row is not None

    def list_readable(self, reads: ReadGrants) -> tuple[DatasetRecord, ...]:
        """See ``ServedChains``."""
        readable, grants = _readable(reads)
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT asked_name, {DATASET_COLUMNS} FROM datasets WHERE {readable}",  # noqa: S608 - constants
                grants,
            )
            return tuple(sorted((_as_known(row, reads) for row in rows), key=lambda record: record.name))

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


def _readable(reads: ReadGrants) -> tuple[str, tuple[object, ...]]:
    granted = tuple(granted_id.to_bytes() for granted_id in reads.datasets)
    condition = f"(? OR (published AND ?) OR id IN ({', '.join('?' * len(granted))}))"
    return condition, (reads.everything, reads.published, *granted)


def _as_known(row: tuple[object, ...], reads: ReadGrants) -> DatasetRecord:
    asked_name, *columns = row
    record = read_dataset(tuple(columns))
    return record if asked_name is None or reads.everything else replace(record, name=str(asked_name))
