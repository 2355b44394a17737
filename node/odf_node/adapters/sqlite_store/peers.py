"""Addresses of others: remotes of datasets, and peers with their pinned keys."""

import sqlite3

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.rows import as_bytes, get_dataset_key
from odf_node.ports.datasets import Remote, RemoteDirection, Repository
from odf_node.ports.errors import PeerKeyChangedError
from odf_node.ports.peers import Peer
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.timestamp import Timestamp


class PeerMethods:
    """The methods of ``MetadataStore`` about remotes and peers."""

    _database: Database

    def put_remote(self, remote: Remote) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO remotes (dataset, direction, url) VALUES (?, ?, ?)",
                (get_dataset_key(connection, remote.dataset_id), remote.direction.value, remote.url),
            )

    def delete_remote(self, remote: Remote) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM remotes WHERE dataset = ? AND direction = ? AND url = ?",
                (get_dataset_key(connection, remote.dataset_id), remote.direction.value, remote.url),
            )

    def list_remotes(self, dataset_id: DatasetId, direction: RemoteDirection) -> tuple[Remote, ...]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT url FROM remotes WHERE dataset = ? AND direction = ? ORDER BY id",
                (get_dataset_key(connection, dataset_id), direction.value),
            )
            return tuple(Remote(dataset_id, direction, str(url)) for (url,) in rows)

    def put_repository(self, repository: Repository) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO repositories (name, url) VALUES (?, ?)", (repository.name, repository.url)
            )

    def find_repository(self, name: str) -> Repository | None:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT name, url FROM repositories WHERE name = ?", (name,)).fetchone()
            return None if row is None else Repository(str(row[0]), str(row[1]))

    def list_repositories(self) -> tuple[Repository, ...]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT name, url FROM repositories ORDER BY name").fetchall()
            return tuple(Repository(str(name), str(url)) for name, url in rows)

    def delete_repository(self, name: str) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM repositories WHERE name = ?", (name,))

    def put_peer(self, peer: Peer) -> Peer:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            known = _find_peer(connection, peer.url)
            if known is None:
                connection.execute(
                    "INSERT INTO peers (url, node_key, first_seen) VALUES (?, ?, ?)",
                    (peer.url, None if peer.node_key is None else peer.node_key.to_bytes(), str(peer.first_seen)),
                )
            elif known.node_key is None and peer.node_key is not None:
                connection.execute("UPDATE peers SET node_key = ? WHERE url = ?", (peer.node_key.to_bytes(), peer.url))
            elif known.node_key != peer.node_key:
                raise PeerKeyChangedError(peer.url, known.node_key, peer.node_key)
            connection.executemany(
                "INSERT OR IGNORE INTO peer_publisher_keys (peer, publisher_key) VALUES (?, ?)",
                ((peer.url, key.to_bytes()) for key in peer.publisher_keys),
            )
            kept = _find_peer(connection, peer.url)
            assert kept is not None
            return kept

    def find_peer(self, url: str) -> Peer | None:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            return _find_peer(connection, url)

    def list_peers(self) -> tuple[Peer, ...]:
        """See ``MetadataStore``."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT url, node_key, first_seen FROM peers ORDER BY url").fetchall()
            return tuple(_read_peer(connection, row) for row in rows)

    def delete_peer(self, url: str) -> None:
        """See ``MetadataStore``."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM peers WHERE url = ?", (url,))


def _find_peer(connection: sqlite3.Connection, url: str) -> Peer | None:
    row = connection.execute("SELECT url, node_key, first_seen FROM peers WHERE url = ?", (url,)).fetchone()
    return None if row is None else _read_peer(connection, row)


def _read_peer(connection: sqlite3.Connection, row: tuple[object, ...]) -> Peer:
    url, node_key, first_seen = row
    keys = connection.execute("SELECT publisher_key FROM peer_publisher_keys WHERE peer = ? ORDER BY id", (url,))
    return Peer(
        url=str(url),
        node_key=None if node_key is None else DidKey.decode(as_bytes(node_key)),
        publisher_keys=tuple(DidKey.decode(as_bytes(key)) for (key,) in keys),
        first_seen=Timestamp.parse(str(first_seen)),
    )
