"""Dataset records."""

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.rows import DATASET_COLUMNS, as_bytes, read_dataset
from odf_node.ports.datasets import DatasetRecord
from odf_node.ports.errors import DatasetNotFoundError, NameTakenError
from odf_protocol.did import DatasetId, DidKey


class DatasetMethods:
    """The methods of ``MetadataStore`` about dataset records."""

    _database: Database

    def find_dataset(self, dataset_id: DatasetId) -> DatasetRecord | None:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT {DATASET_COLUMNS} FROM datasets WHERE id = ?",  # noqa: S608 - a constant
                (dataset_id.to_bytes(),),
            ).fetchone()
            return None if row is None else read_dataset(row)

    def find_dataset_by_name(self, name: str) -> DatasetRecord | None:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT {DATASET_COLUMNS} FROM datasets WHERE name = ?",  # noqa: S608 - a constant
                (name,),
            ).fetchone()
            return None if row is None else read_dataset(row)

    def list_datasets(self) -> tuple[DatasetRecord, ...]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT {DATASET_COLUMNS} FROM datasets ORDER BY name")  # noqa: S608 - a constant
            return tuple(read_dataset(row) for row in rows)

    def set_published(self, dataset_id: DatasetId, published: bool) -> None:
        """See ``MetadataStore``."""
        self._update("UPDATE datasets SET published = ? WHERE id = ?", int(published), dataset_id)

    def set_pinned_key(self, dataset_id: DatasetId, key: DidKey | None) -> None:
        """See ``MetadataStore``."""
        value = None if key is None else key.to_bytes()
        self._update("UPDATE datasets SET pinned_key = ? WHERE id = ?", value, dataset_id)

    def rename_dataset(self, dataset_id: DatasetId, name: str) -> None:
        """See ``MetadataStore``."""
        key = dataset_id.to_bytes()
        with self._database.writing() as connection:
            # Case does not make another name, and may be all that changes of this one (NAME-3).
            holder = connection.execute(
                "SELECT id FROM datasets WHERE name = ? COLLATE NOCASE AND id <> ?", (name, key)
            ).fetchone()
            if holder is not None:
                raise NameTakenError(name, DatasetId.decode(as_bytes(holder[0])))
            if connection.execute("UPDATE datasets SET name = ? WHERE id = ?", (name, key)).rowcount == 0:
                raise DatasetNotFoundError(dataset_id)
            connection.execute("UPDATE subscriptions SET name = ? WHERE dataset_id = ?", (name, key))

    def delete_dataset(self, dataset_id: DatasetId) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            cursor = connection.execute("DELETE FROM datasets WHERE id = ?", (dataset_id.to_bytes(),))
            if cursor.rowcount == 0:
                raise DatasetNotFoundError(dataset_id)

    def _update(self, statement: str, value: object, dataset_id: DatasetId) -> None:
        with self._database.writing() as connection:
            if connection.execute(statement, (value, dataset_id.to_bytes())).rowcount == 0:
                raise DatasetNotFoundError(dataset_id)
