"""What the node's own database says that others may hear (GOSSIP-54)."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from odf_gossip_protocol import Interests, Item, ItemKind, read_item
from odf_node.keys.logs import KeyLogs
from odf_node.records.datasets import Subscription
from odf_node.records.evidence import DocumentKind
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.peer_addresses import PeerAddress

PROOF_ROUNDS: Final = 5  # guess: proofs that gossip did not bring are rare, and so are settlements
PAGE_ATTESTATIONS: Final = 200
_DISPUTES: Final = (
    (DocumentKind.EQUIVOCATION, ItemKind.EQUIVOCATION),
    (DocumentKind.SETTLEMENT, ItemKind.SETTLEMENT),
)


@dataclass(frozen=True, slots=True)
class HomeView:
    """What the node's own database says at a round."""

    news: tuple[Item, ...]
    interests: Interests
    pinned: tuple[PeerAddress, ...]
    subscriptions: tuple[Subscription, ...]


@dataclass
class HomeReader:
    """Finds what is new in the node's own database; remembers what it has told.

    Attributes:
        store: What the home keeps.
        bootstrap: Addresses that the operator's configuration names.
        read_signers: Says whose every word is of interest, such as auditors; asked each round.
        tells: Whether everybody may know what this node publishes.
        read_change: Answers equal as long as nothing was committed: then nothing is read.
    """

    store: MetadataStore
    bootstrap: tuple[PeerAddress, ...] = ()
    read_signers: Callable[[], frozenset[DidKey]] = frozenset
    tells: Callable[[], bool] = lambda: True
    read_change: Callable[[], object] = object
    _reported: dict[DatasetId, int] = field(default_factory=dict)
    _published: frozenset[DatasetId] = frozenset()
    _arrival: int = 0
    _reads: int = 0
    _state: object = None
    _rounds_without_change: int = 0
    _view: HomeView | None = None
    _has_more: bool = False

    def read(self) -> HomeView:
        """Look; in a worker thread."""
        # Read before the rest: what is committed meanwhile is news for the next round.
        state = self.read_change(), self.tells(), self.read_signers()
        self._rounds_without_change = self._rounds_without_change + 1 if state == self._state else 0
        self._state = state
        # What some rounds put off, they have done after so many.
        if self._view is None or self._rounds_without_change <= PROOF_ROUNDS or self._view.news or self._has_more:
            self._view = self._read()
        return self._view

    def _read(self) -> HomeView:
        records = self.store.list_datasets()
        news: list[Item] = []
        reported = [record for record in records if record.published] if self.tells() else []
        documents = self.store.list_head_documents()
        for record in reported:
            place = documents.get(record.id)
            if place is None or self._reported.get(record.id) == place:
                continue
            self._reported[record.id] = place
            # A key speaks for a head once others know the events that name it.
            news += read_items(ItemKind.KEY_EVENT, KeyLogs(self.store).documents_about(record.id))
            signed = self.store.find_signed_head(record.id)
            if signed is not None:
                news += read_items(ItemKind.HEAD, [signed.raw])
        published = frozenset(record.id for record in reported)
        if published - self._published:
            self._arrival = 0  # what was said about a dataset before it was published is told now
        self._published = published
        attestations = self.store.list_attestations_after(self._arrival, limit=PAGE_ATTESTATIONS)
        self._has_more = len(attestations) == PAGE_ATTESTATIONS
        if attestations:
            self._arrival = attestations[-1][0]
            stated = read_items(ItemKind.ATTESTATION, [raw for _, raw in attestations])
            news += [item for item in stated if item.dataset_id in published]
        self._reads += 1
        if self._reads % PROOF_ROUNDS == 1:
            for record in reported:
                # A recovery key is named without a new head.
                news += read_items(ItemKind.KEY_EVENT, KeyLogs(self.store).documents_about(record.id))
                for kind, item_kind in _DISPUTES:
                    documents_of_kind = self.store.iter_documents(record.id, kind)
                    news += read_items(item_kind, [document.raw for document in documents_of_kind])
        subscriptions = self.store.list_subscriptions()
        named = [address for url in self.store.list_named_peers() if (address := _find_address(url)) is not None]
        held = frozenset(record.id for record in records)
        return HomeView(
            tuple(news),
            Interests(held | {subscription.dataset_id for subscription in subscriptions}, self.read_signers()),
            tuple(dict.fromkeys((*named, *self.bootstrap))),
            subscriptions,
        )


def _find_address(text: str) -> PeerAddress | None:
    """Read an address that the operator wrote, in the spelling that gossip uses; None where gossip cannot use it."""
    with suppress(MalformedError):
        return PeerAddress.parse(text.rstrip("/").lower())
    return None


def read_items(kind: ItemKind, documents: Iterable[bytes]) -> list[Item]:
    """Read what was kept here; what this version does not take as an item is left where it is."""
    items = []
    for raw in documents:
        with suppress(OdfError):
            items.append(read_item(kind, raw))
    return items
