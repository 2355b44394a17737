"""Subscriptions: which datasets of others are to be brought up to date by themselves.

Gossip brings news of them (``spec/plug-ins/gossip.md``).
"""

from dataclasses import dataclass

from odf_node.datasets.naming import get_dataset
from odf_node.errors import UsageError
from odf_node.exchange.pulling import name_in_url
from odf_node.home import Home
from odf_node.ports.peer_client import OpenPeer
from odf_node.records.datasets import Origin, Subscription
from odf_protocol.did import DatasetId
from odf_protocol.names import DatasetName


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The use case behind ``odf-node subscribe``."""

    home: Home
    open_peer: OpenPeer

    async def add(self, source: str, *, local_name: str | None) -> Subscription:
        """Subscribe to a dataset that is named by its name here, its identity, or its address elsewhere.

        Raises:
            UnknownDatasetError: There is no dataset of this name here.
            UsageError: It is this node's own, or has no name yet and none was given.
        """
        url: str | None = None
        if source.startswith(DatasetId.scheme):
            dataset_id: DatasetId | None = DatasetId.parse(source)
        elif "://" in source:
            url = source
            async with await self.open_peer(source) as peer:
                dataset_id = (await peer.get_head()).dataset_id
            if dataset_id is None:
                raise UsageError(f"{source} does not say whose dataset it is; pull it, then subscribe to it by name")
        else:
            dataset_id = get_dataset(self.home.store, source).id
        assert dataset_id is not None
        record = self.home.store.find_dataset(dataset_id)
        if record is not None and record.origin is Origin.OWN:
            raise UsageError(f"'{record.name}' is this node's own; no other node has newer versions of it")
        if record is not None:
            name = record.name
        elif local_name or url:
            name = str(DatasetName.parse(local_name)) if local_name else name_in_url(url or "")
        else:
            raise UsageError(f"{source} is not in this node yet; name it with --as")
        origin = record.origin_url if record is not None and "://" in (record.origin_url or "") else None
        subscription = Subscription(dataset_id=dataset_id, name=name, url=url or origin, since=self.home.clock.now())
        self.home.store.put_subscription(subscription)
        return subscription

    def remove(self, source: str) -> Subscription:
        """End a subscription that is named by name or identity.

        Raises:
            UsageError: There is none.
        """
        for subscription in self.home.store.list_subscriptions():
            if source in {subscription.name, str(subscription.dataset_id)}:
                self.home.store.delete_subscription(subscription.dataset_id)
                return subscription
        raise UsageError(f"nothing called '{source}' is subscribed to; 'odf-node subscribe --list' shows what is")
