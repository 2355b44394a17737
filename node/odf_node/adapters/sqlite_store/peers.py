"""Other nodes: their pinned keys, where datasets are pulled from and pushed to, what others said and is passed on."""

import sqlite3
from collections.abc import Iterable

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.rows import as_bytes, get_dataset_key
from odf_node.ports.datasets import Remote, RemoteDirection, Repository
from odf_node.ports.errors import PeerKeyChangedError
from odf_node.ports.gossip import KeptItem
from odf_node.ports.peers import Peer
from odf_node.ports.subscriptions import Subscription
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.timestamp import Timestamp


class SqlitePeers(SqlitePort):
    """``PeerStore`` on SQLite."""

    def put_peer(self, peer: Peer) -> Peer:
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
        with self._database.reading() as connection:
            return _find_peer(connection, url)

    def list_peers(self) -> tuple[Peer, ...]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT url, node_key, first_seen FROM peers ORDER BY url").fetchall()
            return tuple(_read_peer(connection, row) for row in rows)

    def delete_peer(self, url: str) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM peers WHERE url = ?", (url,))

    def name_peer(self, url: str, at: Timestamp) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO peers (url, first_seen, named) VALUES (?, ?, 1) ON CONFLICT (url) DO UPDATE SET named = 1",
                (url, str(at)),
            )

    def list_named_peers(self) -> tuple[str, ...]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT url FROM peers WHERE named = 1 ORDER BY url").fetchall()
            return tuple(str(url) for (url,) in rows)

    def replace_peer_records(self, records: Iterable[bytes]) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM peer_records")
            connection.executemany("INSERT OR IGNORE INTO peer_records (raw) VALUES (?)", ((raw,) for raw in records))

    def list_peer_records(self) -> tuple[bytes, ...]:
        with self._database.reading() as connection:
            return tuple(as_bytes(raw) for (raw,) in connection.execute("SELECT raw FROM peer_records").fetchall())


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


class SqliteSubscriptions(SqlitePort):
    """``SubscriptionStore`` on SQLite."""

    def put_subscription(self, subscription: Subscription) -> None:
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO subscriptions (dataset_id, name, url, since) VALUES (?, ?, ?, ?)",
                (
                    subscription.dataset_id.to_bytes(),
                    subscription.name,
                    subscription.url,
                    str(subscription.since),
                ),
            )

    def delete_subscription(self, dataset_id: DatasetId) -> bool:
        with self._database.writing() as connection:
            deleted = connection.execute("DELETE FROM subscriptions WHERE dataset_id = ?", (dataset_id.to_bytes(),))
            return deleted.rowcount > 0

    def list_subscriptions(self) -> tuple[Subscription, ...]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT dataset_id, name, url, since FROM subscriptions ORDER BY name").fetchall()
            return tuple(
                Subscription(
                    dataset_id=DatasetId.decode(as_bytes(dataset_id)),
                    name=str(name),
                    url=None if url is None else str(url),
                    since=Timestamp.parse(str(since)),
                )
                for dataset_id, name, url, since in rows
            )


class SqliteGossipItems(SqlitePort):
    """``GossipItems`` on SQLite."""

    def change_gossip_items(self, added: Iterable[KeptItem], removed: Iterable[bytes]) -> None:
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO gossip_items (id, kind, raw) VALUES (?, ?, ?)",
                ((item.id, item.kind, item.raw) for item in added),
            )
            connection.executemany("DELETE FROM gossip_items WHERE id = ?", ((id_,) for id_ in removed))

    def list_gossip_items(self) -> tuple[KeptItem, ...]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT id, kind, raw FROM gossip_items ORDER BY arrival").fetchall()
        return tuple(KeptItem(as_bytes(id_), str(kind), as_bytes(raw)) for id_, kind, raw in rows)
