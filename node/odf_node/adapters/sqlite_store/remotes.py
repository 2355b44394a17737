"""Where datasets are pulled from and pushed to."""

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.rows import get_dataset_key
from odf_node.ports.datasets import Remote, RemoteDirection, Repository
from odf_protocol.did import DatasetId


class SqliteRemotes(SqlitePort):
    """``RemoteStore`` on SQLite."""

    def put_remote(self, remote: Remote) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO remotes (dataset, direction, url) VALUES (?, ?, ?)",
                (get_dataset_key(connection, remote.dataset_id), remote.direction.value, remote.url),
            )

    def delete_remote(self, remote: Remote) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM remotes WHERE dataset = ? AND direction = ? AND url = ?",
                (get_dataset_key(connection, remote.dataset_id), remote.direction.value, remote.url),
            )

    def list_remotes(self, dataset_id: DatasetId, direction: RemoteDirection) -> tuple[Remote, ...]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT url FROM remotes WHERE dataset = ? AND direction = ? ORDER BY id",
                (get_dataset_key(connection, dataset_id), direction.value),
            )
            return tuple(Remote(dataset_id, direction, str(url)) for (url,) in rows)

    def put_repository(self, repository: Repository) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO repositories (name, url) VALUES (?, ?)", (repository.name, repository.url)
            )

    def find_repository(self, name: str) -> Repository | None:
        with self._database.reading() as connection:
            row = connection.execute("SELECT name, url FROM repositories WHERE name = ?", (name,)).fetchone()
            return None if row is None else Repository(str(row[0]), str(row[1]))

    def list_repositories(self) -> tuple[Repository, ...]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT name, url FROM repositories ORDER BY name").fetchall()
            return tuple(Repository(str(name), str(url)) for name, url in rows)

    def delete_repository(self, name: str) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM repositories WHERE name = ?", (name,))
