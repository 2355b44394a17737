"""Datasets that are brought up to date by themselves."""

from odf_node.adapters.sqlite_store.database import SqlitePort
from odf_node.adapters.sqlite_store.rows import as_bytes
from odf_node.ports.subscriptions import Subscription
from odf_protocol.did import DatasetId
from odf_protocol.timestamp import Timestamp


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
