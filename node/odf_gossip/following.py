"""Subscriptions: a dataset is brought up to date by itself when a head arrives that is newer than what is here."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from odf_gossip_protocol.item import Item
from odf_node.errors import UsageError
from odf_node.exchange.taking import PullRequest
from odf_node.ports.peer_client import OpenPeer
from odf_node.records.datasets import Origin, Subscription
from odf_node.records.evidence import DocumentKind
from odf_node.store import MetadataStore
from odf_protocol.accept_policies import PolicySet
from odf_protocol.did import DatasetId
from odf_protocol.errors import OdfError
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from odf_protocol.peer_addresses import PeerAddress
from odf_protocol.public_addresses import as_heard

if TYPE_CHECKING:
    from odf_node.exchange.taking import Taking


SHORTEST_WAIT_S: Final = 2.0  # guess: a round of gossip
FIRST_WAIT_S: Final = 5.0  # guess: whoever announced a head may still be busy
MAX_REASONS: Final = 3  # guess: enough for one line of a log
LONGEST_WAIT_S: Final = 3600.0  # guess


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """All that an acceptance may depend on and that is known here without asking anybody.

    Strangers can change none of it: heads and documents are the dataset key's, statements those of named auditors.

    Attributes:
        head: Id of the newest head that there is news of, None without news.
        statements: Those of auditors that the policies name about the dataset.
        documents: Proofs against it, and settlements.
        inputs: Heads of the other datasets that are subscribed to: some may be its inputs.
        policies: In force; None while they cannot be read.
    """

    head: bytes | None
    statements: frozenset[Multihash] = frozenset()
    documents: int = 0
    inputs: frozenset[tuple[DatasetId, Head]] = frozenset()
    policies: PolicySet | None = None


@dataclass(frozen=True, slots=True)
class _Failure:
    circumstances: Circumstances
    count: int
    soon_s: float
    until_s: float


@dataclass(slots=True)
class Attempts:
    """What failed last for each dataset, and until when it is left alone."""

    _failures: dict[DatasetId, _Failure] = field(default_factory=dict)

    def is_due(self, dataset_id: DatasetId, circumstances: Circumstances, now_s: float) -> bool:
        """Say whether an attempt makes sense now; ``now_s`` is of any clock that does not go back."""
        failure = self._failures.get(dataset_id)
        if failure is None:
            return True
        return now_s >= (failure.until_s if failure.circumstances == circumstances else failure.soon_s)

    def fail(self, dataset_id: DatasetId, circumstances: Circumstances, now_s: float) -> float:
        """Note a failure and return how long nothing is tried while nothing changes, in seconds."""
        before = self._failures.get(dataset_id)
        count = before.count + 1 if before is not None and before.circumstances == circumstances else 1
        wait_s: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(count - 1, 12))
        self._failures[dataset_id] = _Failure(circumstances, count, now_s + SHORTEST_WAIT_S, now_s + wait_s)
        return wait_s

    def succeed(self, dataset_id: DatasetId) -> None:
        """Forget the failures of a dataset."""
        self._failures.pop(dataset_id, None)


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


@dataclass
class Follower:
    """Pulls, verifies and accepts what there is news of: the same gate and the same policy as for ``pull``.

    Args:
        store: What the home keeps.
        taking: Gives the way of blocks into this node, which takes a while to load, once there is news.
        open_peer: Opens addresses; those that are marked as heard, with the care that they need.
        read_policies: Reads what the operator accepts on what proof.
        log: Hears what happened: event and facts.
        turn: Entered to judge what was fetched.
    """

    store: MetadataStore
    taking: "Callable[[], Taking]"
    open_peer: OpenPeer
    read_policies: Callable[[], PolicySet]
    log: Callable[..., None]
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    _attempts: Attempts = field(default_factory=Attempts)

    async def run(self, news: News, every_s: float, stop: asyncio.Event) -> None:
        """Look for news until told to stop."""
        while not stop.is_set():
            await self.look(news, stop)
            with suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await stop.wait()

    async def look(self, news: News, stop: asyncio.Event) -> None:
        """Bring every dataset up to date that is behind and due."""
        heads = news.find_news()
        for subscription in news.subscriptions:
            if stop.is_set():
                return
            head = heads.get(subscription.dataset_id)
            if head is None and subscription.url is None:
                continue  # nobody knows it yet, and there is no address to ask
            if not await self._has(subscription.dataset_id, head):
                await self._bring(news, subscription, head)

    async def _bring(self, news: News, subscription: Subscription, head: Item | None) -> None:
        dataset_id, now_s = subscription.dataset_id, asyncio.get_running_loop().time()
        circumstances = await asyncio.to_thread(self._look_around, dataset_id, head)
        if not self._attempts.is_due(dataset_id, circumstances, now_s):
            return
        reasons: list[str] = []
        async for url in self._sources(news, subscription, is_reported=head is not None):
            try:
                async with await self.open_peer(url) as peer:
                    taking = await asyncio.to_thread(self.taking)
                    await taking.take(peer, self._pull_request_of(subscription, url))
            except (OdfError, UsageError) as error:
                reasons.append(f"{url}: {error}")
                continue
            if await self._has(dataset_id, head):
                self._attempts.succeed(dataset_id)
                self.log("subscription-updated", dataset=subscription.name, source=url)
                return
            reasons.append(f"{url} has no newer head than is here")
        wait_s = self._attempts.fail(dataset_id, circumstances, now_s)
        # The address that the operator gave was asked first; peers that gossip named may be many.
        text = "; ".join(reasons[:MAX_REASONS]) or "no node is known to have it"
        self.log("subscription-waits", dataset=subscription.name, text=text, retry_in_s=wait_s)

    def _pull_request_of(self, subscription: Subscription, url: str) -> PullRequest:
        return PullRequest(
            url=url, name=subscription.name, expected_id=subscription.dataset_id, actor="subscription", turn=self.turn
        )

    def _look_around(self, dataset_id: DatasetId, head: Item | None) -> Circumstances:
        """Collect what can make a pull succeed that failed before, as a settlement does (EQUIV-14)."""
        policies: PolicySet | None = None
        with suppress(OdfError):  # who pulls is told what is wrong with them
            policies = self.read_policies()
        auditors = frozenset(auditor.key for auditor in policies.auditors) if policies else frozenset()
        stated = self.store.iter_attestations(dataset_id)
        kinds = (DocumentKind.EQUIVOCATION, DocumentKind.SETTLEMENT)
        followed = {subscription.dataset_id for subscription in self.store.list_subscriptions()} - {dataset_id}
        return Circumstances(
            head=None if head is None else head.id,
            statements=frozenset(statement.id for statement in stated if statement.attester in auditors),
            documents=sum(1 for kind in kinds for _ in self.store.iter_documents(dataset_id, kind)),
            inputs=frozenset((r.id, r.head) for r in self.store.list_datasets() if r.id in followed),
            policies=policies,
        )

    async def _has(self, dataset_id: DatasetId, head: Item | None) -> bool:
        record = await asyncio.to_thread(self.store.find_dataset, dataset_id)
        if record is None or record.origin is Origin.OWN:
            return record is not None
        return head is None or record.head.sequence_number >= head.rank[0]

    async def _sources(self, news: News, subscription: Subscription, *, is_reported: bool) -> AsyncIterator[str]:
        record = await asyncio.to_thread(self.store.find_dataset, subscription.dataset_id)
        origin = None if record is None else record.origin_url
        if subscription.url is not None:
            yield subscription.url
        if origin is not None and "://" in origin and origin != subscription.url:
            yield origin
        named = set(await asyncio.to_thread(self.store.list_named_peers))
        for address in news.list_sources():
            url = f"{address}/{subscription.dataset_id}"
            if address.text in named:
                yield url
            elif is_reported:  # else nobody there may know that there is such a dataset: to ask would tell them
                yield as_heard(url)
