"""Records of datasets, as they are changed and as callers may see them, and what datasets say of themselves."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

from odf_node.records.access import ReadGrants
from odf_node.records.datasets import BlockRole, DatasetRecord
from odf_node.records.errors import DatasetNotFoundError, NameMovedError, NameTakenError
from odf_node.store.database import StoreTables
from odf_node.store.rows import DATASET_COLUMNS, as_bytes, as_int, read_dataset
from odf_protocol.did import DatasetId
from odf_protocol.names import DatasetName

_BY_NAME: Final = "(name = ? COLLATE NOCASE OR asked_name = ? COLLATE NOCASE)"
"""Names are ASCII, so this is the comparison of NAME-3; indexes know it."""


class DatasetTables(StoreTables):
    """Records of datasets as their owner changes them, and as callers may see them."""

    def set_published(self, dataset_id: DatasetId, published: bool) -> None:
        """Say whether others are served the dataset."""
        if not self._write("UPDATE datasets SET published = ? WHERE id = ?", int(published), dataset_id.to_bytes()):
            raise DatasetNotFoundError(dataset_id)

    def rename_dataset(self, dataset_id: DatasetId, before: str, name: str) -> None:
        """Give the dataset, and a subscription to it, another local name.

        Raises:
            NameTakenError: Another dataset has it.
            NameMovedError: The dataset is not called ``before`` any more.
            DatasetNotFoundError: It is not here.
        """
        key = dataset_id.to_bytes()
        with self._database.writing() as connection:
            held = connection.execute("SELECT name FROM datasets WHERE id = ?", (key,)).fetchone()
            if held is None:
                raise DatasetNotFoundError(dataset_id)
            if held[0] != before:
                raise NameMovedError(before, str(held[0]))
            # Case does not make another name, and may be all that changes of this one (NAME-3).
            holder = connection.execute(
                "SELECT id FROM datasets WHERE name = ? COLLATE NOCASE AND id <> ?", (name, key)
            ).fetchone()
            if holder is not None:
                raise NameTakenError(name, DatasetId.decode(as_bytes(holder[0])))
            connection.execute("UPDATE datasets SET name = ? WHERE id = ?", (name, key))
            connection.execute("UPDATE subscriptions SET name = ? WHERE dataset_id = ?", (name, key))

    def delete_dataset(self, dataset_id: DatasetId) -> None:
        """Forget the dataset: chain, signatures, heads, step records, acceptances, quarantine, remotes.

        Attestations stay: they are evidence. Objects stay until a sweep finds that nothing names them.
        """
        if not self._write("DELETE FROM datasets WHERE id = ?", dataset_id.to_bytes()):
            raise DatasetNotFoundError(dataset_id)

    def find_readable(self, which: DatasetId | DatasetName, reads: ReadGrants) -> DatasetRecord | None:
        """Return the record, or None: it is not here, or may not be read; both take the same way.

        Names are compared without regard to case (NAME-3). The record has the name under which the caller knows the
        dataset: one that was brought under a name that is taken here keeps it for all who may not read everything
        (EX-85).
        """
        values: list[object]
        if isinstance(which, DatasetId):
            named, values = "id = ?", [which.to_bytes()]
        else:
            named, values = _BY_NAME, [which.text, which.text]
        readable, grants = _readable(reads)
        return self._find(
            lambda row: _as_known(row, reads),
            f"SELECT asked_name, {DATASET_COLUMNS} FROM datasets WHERE {named} AND {readable}"  # noqa: S608 - constants
            " ORDER BY asked_name IS NOT NULL, key LIMIT 1",
            *values,
            *grants,
        )

    def list_readable(self, reads: ReadGrants) -> tuple[DatasetRecord, ...]:
        """Return the records that may be read, by the name under which the caller knows each."""
        readable, grants = _readable(reads)
        statement = f"SELECT asked_name, {DATASET_COLUMNS} FROM datasets WHERE {readable}"  # noqa: S608 - constants
        found = self._list(lambda row: _as_known(row, reads), statement, *grants)
        return tuple(sorted(found, key=lambda record: record.name))


def _readable(reads: ReadGrants) -> tuple[str, tuple[object, ...]]:
    granted = tuple(granted_id.to_bytes() for granted_id in reads.datasets)
    condition = f"(? OR (published AND ?) OR id IN ({', '.join('?' * len(granted))}))"
    return condition, (reads.everything, reads.published, *granted)


def _as_known(row: tuple[object, ...], reads: ReadGrants) -> DatasetRecord:
    asked_name, *columns = row
    record = read_dataset(tuple(columns))
    return record if asked_name is None or reads.everything else replace(record, name=str(asked_name))


_PAGE_DATASETS: Final = 500  # one read transaction each, as elsewhere

# In this order of tables the index blocks_by_role is used, and no block with rows is looked at.
_PAGE: Final = (
    "SELECT d.key, d.id, b.raw FROM (SELECT key, id FROM datasets WHERE key > ? ORDER BY key LIMIT ?) d"
    " CROSS JOIN blocks b ON b.dataset = d.key AND b.role = ? ORDER BY d.key, b.sequence_number"
)
_NEWEST: Final = "SELECT raw FROM blocks WHERE dataset = ? AND role = ? ORDER BY sequence_number DESC LIMIT 1"
_ABOUT: Final = tuple(sorted(role for role in BlockRole if role < BlockRole.DEFINITION))


class DefinitionTables(StoreTables):
    """Blocks that define datasets, of all datasets in one go."""

    def iter_definitions(self) -> Iterator[tuple[DatasetId, bytes]]:
        """Yield each dataset with its blocks of the role DEFINITION, one behind the other, as they arrived.

        In no order; datasets that come or go meanwhile may be missing. Memory does not grow with their number.
        """
        after = -1
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(_PAGE, (after, _PAGE_DATASETS, BlockRole.DEFINITION)).fetchall()
                keys = dict.fromkeys(as_int(row[0]) for row in rows)
                about = {key: [row[0] for role in _ABOUT for row in connection.execute(_NEWEST, (key, role))]
                         for key in keys}  # fmt: skip
            if not rows:
                return
            for key, found in groupby(rows, key=lambda row: as_int(row[0])):
                blocks = list(found)
                raws = [*(row[2] for row in blocks), *about[key]]
                yield DatasetId.decode(as_bytes(blocks[0][1])), b"\0".join(map(as_bytes, raws))
            after = as_int(rows[-1][0])
