"""What gossip keeps: items, records of peers, subscriptions, addresses that the operator named."""

from collections.abc import Iterable

from odf_node.adapters.sqlite_store.database import Database
from odf_node.adapters.sqlite_store.rows import as_bytes, as_int
from odf_node.ports.gossip import KeptItem, Subscription
from odf_protocol.did import DatasetId
from odf_protocol.timestamp import Timestamp


class GossipMethods:
    """The methods of ``GossipStore``."""

    _database: Database

    def change_gossip_items(self, added: Iterable[KeptItem], removed: Iterable[bytes]) -> None:
        """See ``GossipStore``."""
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO gossip_items (id, kind, raw) VALUES (?, ?, ?)",
                ((item.id, item.kind, item.raw) for item in added),
            )
            connection.executemany("DELETE FROM gossip_items WHERE id = ?", ((id_,) for id_ in removed))

    def list_gossip_items(self) -> tuple[KeptItem, ...]:
        """See ``GossipStore``."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT id, kind, raw FROM gossip_items ORDER BY arrival").fetchall()
        return tuple(KeptItem(as_bytes(id_), str(kind), as_bytes(raw)) for id_, kind, raw in rows)

    def replace_peer_records(self, records: Iterable[bytes]) -> None:
        """See ``GossipStore``."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM peer_records")
            connection.executemany("INSERT OR IGNORE INTO peer_records (raw) VALUES (?)", ((raw,) for raw in records))

    def list_peer_records(self) -> tuple[bytes, ...]:
        """See ``GossipStore``."""
        with self._database.reading() as connection:
            return tuple(as_bytes(raw) for (raw,) in connection.execute("SELECT raw FROM peer_records").fetchall())

    def put_subscription(self, subscription: Subscription) -> None:
        """See ``GossipStore``."""
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
        """See ``GossipStore``."""
        with self._database.writing() as connection:
            deleted = connection.execute("DELETE FROM subscriptions WHERE dataset_id = ?", (dataset_id.to_bytes(),))
            return deleted.rowcount > 0

    def list_subscriptions(self) -> tuple[Subscription, ...]:
        """See ``GossipStore``."""
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

    def name_peer(self, url: str, at: Timestamp) -> None:
        """See ``GossipStore``."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO peers (url, first_seen, named) VALUES (?, ?, 1) ON CONFLICT (url) DO UPDATE SET named = 1",
                (url, str(at)),
            )

    def list_named_peers(self) -> tuple[str, ...]:
        """See ``GossipStore``."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT url FROM peers WHERE named = 1 ORDER BY url").fetchall()
            return tuple(str(url) for (url,) in rows)

    def list_head_documents(self) -> dict[DatasetId, int]:
        """See ``GossipStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT d.id, max(s.id) FROM datasets d JOIN signed_heads s"
                " ON s.dataset = d.key AND s.sequence_number = d.head_sequence_number AND s.hash = d.head_hash"
                " GROUP BY d.key"
            ).fetchall()
            return {DatasetId.decode(as_bytes(id_)): as_int(place) for id_, place in rows}

    def list_attestations_after(self, arrival: int, *, limit: int) -> tuple[tuple[int, bytes], ...]:
        """See ``GossipStore``."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT arrival, raw FROM attestations WHERE arrival > ? ORDER BY arrival LIMIT ?", (arrival, limit)
            ).fetchall()
            return tuple((as_int(place), as_bytes(raw)) for place, raw in rows)
