"""Datasets that are brought up to date by themselves."""

from dataclasses import dataclass
from typing import Protocol

from odf_protocol.did import DatasetId
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A dataset that is brought up to date by itself when a new head arrives.

    Attributes:
        dataset_id: Which one; it need not be here yet.
        name: What it is to be called here.
        url: Where to ask first; None: peers that gossip only.
        since: When it was subscribed to.
    """

    dataset_id: DatasetId
    name: str
    url: str | None
    since: Timestamp


class SubscriptionStore(Protocol):
    """Subscriptions of this node."""

    def put_subscription(self, subscription: Subscription) -> None:
        """Subscribe, or change a subscription of the same dataset."""
        ...

    def delete_subscription(self, dataset_id: DatasetId) -> bool:
        """End a subscription; say whether there was one."""
        ...

    def list_subscriptions(self) -> tuple[Subscription, ...]:
        """Return all subscriptions, by name."""
        ...
