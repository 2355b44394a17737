"""Other nodes: their pinned keys, where datasets are pulled from and pushed to, what others said and is passed on."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from odf_node.records.datasets import Remote, RemoteDirection, Repository, Subscription
from odf_node.records.errors import PeerKeyChangedError
from odf_node.records.peers import KeptItem, Peer
from odf_node.store.database import StoreTables
from odf_node.store.rows import as_bytes, get_dataset_key
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.timestamp import Timestamp


class PeerTables(StoreTables):
    """Nodes that were met, and those that the operator named to gossip with."""

    def put_peer(self, peer: Peer) -> Peer:
        """Remember a peer: first sight fixes ``node_key`` and ``first_seen``, publisher keys add up.

        A peer without a node key may get one later.

        Returns:
            The peer as it is now kept.

        Raises:
            PeerKeyChangedError: Another node key is pinned for the address; nothing changed.
        """
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
        """Return the peer at an address, or None."""
        with self._database.reading() as connection:
            return _find_peer(connection, url)

    def list_peers(self) -> tuple[Peer, ...]:
        """Return all peers, by address."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT url, node_key, first_seen FROM peers ORDER BY url").fetchall()
            return tuple(_read_peer(connection, row) for row in rows)

    def delete_peer(self, url: str) -> None:
        """Forget a peer with all it was pinned to; forgetting an unknown one is no error."""
        self._write("DELETE FROM peers WHERE url = ?", url)

    def name_peer(self, url: str, at: Timestamp) -> None:
        """Keep an address that the operator named to gossip with; it may be known as a peer already."""
        self._write(
            "INSERT INTO peers (url, first_seen, named) VALUES (?, ?, 1) ON CONFLICT (url) DO UPDATE SET named = 1",
            url,
            str(at),
        )

    def list_named_peers(self) -> tuple[str, ...]:
        """Return the addresses that the operator named."""
        return self._list(lambda row: str(row[0]), "SELECT url FROM peers WHERE named = 1 ORDER BY url")

    def replace_peer_records(self, records: Iterable[bytes]) -> None:
        """Keep these records of peers that answered, instead of all others."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM peer_records")
            connection.executemany("INSERT OR IGNORE INTO peer_records (raw) VALUES (?)", ((raw,) for raw in records))

    def list_peer_records(self) -> tuple[bytes, ...]:
        """Return them."""
        return self._list(lambda row: as_bytes(row[0]), "SELECT raw FROM peer_records")


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


class StoredTables(StoreTables):
    """Remotes of datasets, and repositories that the user has named."""

    def put_remote(self, remote: Remote) -> None:
        """Remember an address; a known one changes nothing."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO remotes (dataset, direction, url) VALUES (?, ?, ?)",
                (get_dataset_key(connection, remote.dataset_id), remote.direction.value, remote.url),
            )

    def delete_remote(self, remote: Remote) -> None:
        """Forget an address; forgetting an unknown one is no error."""
        with self._database.writing() as connection:
            connection.execute(
                "DELETE FROM remotes WHERE dataset = ? AND direction = ? AND url = ?",
                (get_dataset_key(connection, remote.dataset_id), remote.direction.value, remote.url),
            )

    def list_remotes(self, dataset_id: DatasetId, direction: RemoteDirection) -> tuple[Remote, ...]:
        """Return the addresses in the order they were added."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT url FROM remotes WHERE dataset = ? AND direction = ? ORDER BY id",
                (get_dataset_key(connection, dataset_id), direction.value),
            )
            return tuple(Remote(dataset_id, direction, str(url)) for (url,) in rows)

    def put_repository(self, repository: Repository) -> None:
        """Keep a repository; one of this name (compared without case) is replaced."""
        self._write("INSERT OR REPLACE INTO repositories (name, url) VALUES (?, ?)", repository.name, repository.url)

    def find_repository(self, name: str) -> Repository | None:
        """Return the repository of this name, compared without case, or None."""
        return self._find(lambda row: Repository(*row), "SELECT name, url FROM repositories WHERE name = ?", name)

    def list_repositories(self) -> tuple[Repository, ...]:
        """Return all repositories, by name."""
        return self._list(lambda row: Repository(*row), "SELECT name, url FROM repositories ORDER BY name")

    def delete_repository(self, name: str) -> None:
        """Forget a repository; forgetting an unknown one is no error."""
        self._write("DELETE FROM repositories WHERE name = ?", name)


class SubscriptionTables(StoreTables):
    """Subscriptions of this node."""

    def put_subscription(self, subscription: Subscription) -> None:
        """Subscribe, or change a subscription of the same dataset."""
        self._write(
            "INSERT OR REPLACE INTO subscriptions (dataset_id, name, url, since) VALUES (?, ?, ?, ?)",
            subscription.dataset_id.to_bytes(),
            subscription.name,
            subscription.url,
            str(subscription.since),
        )

    def delete_subscription(self, dataset_id: DatasetId) -> bool:
        """End a subscription; say whether there was one."""
        return self._write("DELETE FROM subscriptions WHERE dataset_id = ?", dataset_id.to_bytes()) > 0

    def list_subscriptions(self) -> tuple[Subscription, ...]:
        """Return all subscriptions, by name."""
        return self._list(_read_subscription, "SELECT dataset_id, name, url, since FROM subscriptions ORDER BY name")


class GossipTables(StoreTables):
    """What others said and is passed on, between runs."""

    def change_gossip_items(self, added: Iterable[KeptItem], removed: Iterable[bytes]) -> None:
        """Keep items and forget others by id; what is kept or unknown already changes nothing."""
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO gossip_items (id, kind, raw) VALUES (?, ?, ?)",
                ((item.id, item.kind, item.raw) for item in added),
            )
            connection.executemany("DELETE FROM gossip_items WHERE id = ?", ((id_,) for id_ in removed))

    def list_gossip_items(self) -> tuple[KeptItem, ...]:
        """Return all items, oldest first."""
        return self._list(lambda row: KeptItem(*row), "SELECT id, kind, raw FROM gossip_items ORDER BY arrival")


def _read_subscription(row: tuple[Any, ...]) -> Subscription:
    dataset_id, name, url, since = row
    return Subscription(dataset_id=DatasetId.decode(dataset_id), name=name, url=url, since=Timestamp.parse(since))
