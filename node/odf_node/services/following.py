"""Subscriptions: a dataset is brought up to date by itself when a head arrives that is newer than what is here."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from odf_node.errors import UsageError
from odf_node.ports import Clock, MetadataStore, Origin
from odf_node.ports.gossip import GossipStore, Subscription
from odf_node.ports.peer_client import PeerDataset
from odf_node.services.naming import get_dataset
from odf_node.services.pulling import Pulling, name_in_url
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.gossip.addresses import PeerAddress
from odf_protocol.gossip.item import Item
from odf_protocol.names import DatasetName

FIRST_WAIT_S: Final = 5.0  # guess: whoever announced a head may still be busy
LONGEST_WAIT_S: Final = 3600.0  # guess
OpenPeer = Callable[[str], Awaitable[PeerDataset]]


class FollowStore(MetadataStore, GossipStore, Protocol):
    """The store as subscriptions need it."""


class News(Protocol):
    """Where heads come from; ``Gossip`` is such."""

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What is subscribed to."""
        ...

    def find_news(self) -> dict[DatasetId, Item]:
        """Return the newest head of each dataset that is subscribed to."""
        ...

    def list_sources(self) -> list[PeerAddress]:
        """Return peers that may have it."""
        ...


class _Silence:
    """A progress line that nobody watches."""

    def say(self, label: str) -> None:
        """Say nothing."""

    def expect(self, total_bytes: int) -> None:
        """Say nothing."""

    def advance(self, size_bytes: int) -> None:
        """Say nothing."""


@dataclass(slots=True)
class _Wait:
    """After a failure: for which head, how often, until when."""

    head: bytes
    failures: int
    until_s: float


@dataclass
class Follower:
    """Pulls, verifies and accepts what there is news of: the same gate and the same policy as for ``pull``.

    Args:
        store: Of this node.
        pulling: The use case behind ``pull``.
        open_named: Opens addresses that the operator named, or that a dataset was pulled from.
        open_stranger: Opens addresses that peers named.
        log: Hears what happened: event and facts.
    """

    store: FollowStore
    pulling: Pulling
    open_named: OpenPeer
    open_stranger: OpenPeer
    log: Callable[..., None]
    _waits: dict[DatasetId, _Wait] = field(default_factory=dict)

    async def run(self, news: News, every_s: float, stop: asyncio.Event) -> None:
        """Look for news until told to stop."""
        while not stop.is_set():
            for dataset_id, item in news.find_news().items():
                if stop.is_set():
                    break
                await self._bring(news, dataset_id, item)
            with suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await stop.wait()

    async def _bring(self, news: News, dataset_id: DatasetId, item: Item) -> None:
        now_s = asyncio.get_running_loop().time()
        wait = self._waits.get(dataset_id)
        if wait is not None and wait.head == item.id and now_s < wait.until_s:
            return
        subscription = next((one for one in news.subscriptions if one.dataset_id == dataset_id), None)
        if subscription is None or await self._has(item):
            return
        reason = "nobody has it"
        async for url, opener in self._sources(news, subscription):
            try:
                async with await opener(url) as peer:
                    await self.pulling.take(
                        peer,
                        url=url,
                        name=subscription.name,
                        policy=None,
                        expected_id=dataset_id,
                        progress=_Silence(),
                    )
            except (OdfError, UsageError) as error:
                reason = f"{url}: {error}"
                continue
            if await self._has(item):
                self._waits.pop(dataset_id, None)
                self.log("subscription-updated", dataset=subscription.name, source=url, head=item.rank[0])
                return
            reason = f"{url} has no newer head than is here"
        failures = wait.failures + 1 if wait is not None and wait.head == item.id else 1
        longest_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(failures - 1, 12))
        self._waits[dataset_id] = _Wait(item.id, failures, now_s + longest_s)
        self.log("subscription-waits", dataset=subscription.name, text=reason, retry_in_s=longest_s)

    async def _has(self, item: Item) -> bool:
        record = await asyncio.to_thread(self.store.find_dataset, item.dataset_id)
        return record is not None and (record.origin is Origin.OWN or record.head.sequence_number >= item.rank[0])

    async def _sources(self, news: News, subscription: Subscription) -> AsyncIterator[tuple[str, OpenPeer]]:
        record = await asyncio.to_thread(self.store.find_dataset, subscription.dataset_id)
        origin = None if record is None else record.origin_url
        seen: set[str] = set()
        if subscription.url is not None:
            seen.add(subscription.url)
            yield subscription.url, self.open_named
        if origin is not None and "://" in origin and origin not in seen:
            yield origin, self.open_stranger
        named = set(await asyncio.to_thread(self.store.list_named_peers))
        for address in news.list_sources():
            url = f"{address}/{subscription.dataset_id}"
            yield url, self.open_named if address.text in named else self.open_stranger


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The use case behind ``odf-node subscribe``."""

    store: FollowStore
    clock: Clock
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
            dataset_id = get_dataset(self.store, source).id
        assert dataset_id is not None
        record = self.store.find_dataset(dataset_id)
        if record is not None and record.origin is Origin.OWN:
            raise UsageError(f"'{record.name}' is this node's own; nobody else has news of it")
        if record is not None:
            name = record.name
        elif local_name or url:
            name = str(DatasetName.parse(local_name)) if local_name else name_in_url(url or "")
        else:
            raise UsageError(f"{source} is not here yet; say with --as what it is to be called")
        origin = record.origin_url if record is not None and "://" in (record.origin_url or "") else None
        subscription = Subscription(dataset_id=dataset_id, name=name, url=url or origin, since=self.clock.now())
        self.store.put_subscription(subscription)
        return subscription

    def remove(self, source: str) -> Subscription:
        """End a subscription that is named by name or identity.

        Raises:
            UsageError: There is none.
        """
        for subscription in self.store.list_subscriptions():
            if source in {subscription.name, str(subscription.dataset_id)}:
                self.store.delete_subscription(subscription.dataset_id)
                return subscription
        raise UsageError(f"nothing called '{source}' is subscribed to; 'odf-node subscribe --list' shows what is")
