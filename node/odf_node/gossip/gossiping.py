"""Gossip in a running node: the machine's clock, memory, ears and mouth.

The machine runs on the event loop alone. What it says is done in tasks: requests go out through the transport, items
go to the disk and then, in order of arrival, to those who want to hear of them. What this node has to say itself is
looked up in the store each round, as other processes (``ingest``, ``pull``) write there too.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from odf_node.keys.logs import KeyLogs
from odf_node.ports import Clock, DocumentKind, MetadataStore
from odf_node.ports.gossip import GossipSink, GossipStore, GossipTransport, KeptItem, Subscription
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.gossip import (
    Accept,
    Effect,
    Event,
    Failed,
    Forget,
    GossipMachine,
    GossipSettings,
    Interests,
    Item,
    ItemKind,
    PeerAddress,
    Publish,
    Received,
    Replied,
    Respond,
    Restore,
    Send,
    SetInterests,
    SetPinned,
    SetRecord,
    Tick,
    decode_peer_record,
    decode_request,
    encode_gossip,
    read_item,
    sign_peer,
)
from odf_protocol.gossip.store import OWN
from odf_protocol.timestamp import Timestamp

RECORD_S: Final = 2 * 86_400
"""How long a record of this node holds; it is signed again after half of it.  # guess"""
SAVE_ROUNDS: Final = 30  # guess: a minute's worth of new peers may be lost with the power
MAX_SOURCES: Final = 64  # guess: asked in one attempt; the next one asks others
MAX_SENDING: Final = 64  # guess: requests on their way at once; more count as failed
PROOF_ROUNDS: Final = 5  # guess: proofs that gossip did not bring are rare, and so are settlements
PAGE_ATTESTATIONS: Final = 200
_DISPUTES: Final = (
    (DocumentKind.EQUIVOCATION, ItemKind.EQUIVOCATION),
    (DocumentKind.SETTLEMENT, ItemKind.SETTLEMENT),
)


class GossipHome(MetadataStore, GossipStore, Protocol):
    """The store as gossip needs it."""


@dataclass(frozen=True, slots=True)
class HomeView:
    """What the node's own database says at a round."""

    news: tuple[Item, ...]
    interests: Interests
    pinned: tuple[PeerAddress, ...]
    subscriptions: tuple[Subscription, ...]


@dataclass
class HomeReader:
    """Finds what is new in the node's own database (GOSSIP-54); remembers what it has told."""

    store: GossipHome
    bootstrap: tuple[PeerAddress, ...]
    read_signers: Callable[[], frozenset[DidKey]]
    tells: Callable[[], bool]
    prepare: Callable[[], None]
    _told: dict[DatasetId, int] = field(default_factory=dict)
    _published: frozenset[DatasetId] = frozenset()
    _arrival: int = 0
    _reads: int = 0

    def read(self) -> HomeView:
        """Look; in a worker thread."""
        self.prepare()
        records = self.store.list_datasets()
        news: list[Item] = []
        told = [record for record in records if record.published] if self.tells() else []
        documents = self.store.list_head_documents()
        for record in told:
            place = documents.get(record.id)
            if place is None or self._told.get(record.id) == place:
                continue
            self._told[record.id] = place
            # A key speaks for a head once others know the events that name it.
            news += _read_all(ItemKind.KEY_EVENT, KeyLogs(self.store).documents_about(record.id))
            signed = self.store.find_signed_head(record.id)
            if signed is not None:
                news += _read_all(ItemKind.HEAD, [signed.raw])
        published = frozenset(record.id for record in told)
        if published - self._published:
            self._arrival = 0  # what was said about a dataset before it was published is told now
        self._published = published
        attestations = self.store.list_attestations_after(self._arrival, limit=PAGE_ATTESTATIONS)
        if attestations:
            self._arrival = attestations[-1][0]
            said = _read_all(ItemKind.ATTESTATION, [raw for _, raw in attestations])
            news += [item for item in said if item.dataset_id in published]
        self._reads += 1
        if self._reads % PROOF_ROUNDS == 1:
            for record in told:
                # A recovery key is named without a new head.
                news += _read_all(ItemKind.KEY_EVENT, KeyLogs(self.store).documents_about(record.id))
                for kind, item_kind in _DISPUTES:
                    documents_of_kind = self.store.iter_documents(record.id, kind)
                    news += _read_all(item_kind, [document.raw for document in documents_of_kind])
        subscriptions = self.store.list_subscriptions()
        named = [address for url in self.store.list_named_peers() if (address := find_address(url)) is not None]
        held = frozenset(record.id for record in records)
        return HomeView(
            tuple(news),
            Interests(held | {subscription.dataset_id for subscription in subscriptions}, self.read_signers()),
            tuple(dict.fromkeys((*named, *self.bootstrap))),
            subscriptions,
        )


class Gossip:
    """``GossipReceiver``, and the loop around it.

    Args:
        store: Of this node.
        private_key: Of this node.
        clock: Time of statements.
        transport: To peers.
        settings: Of the machine.
        bootstrap: Addresses that the operator's configuration names.
        allow_private: Whether private addresses that peers name may be used.
        read_signers: Says whose every word is of interest, such as auditors; asked each round.
        sinks: Who hears of what arrives.
        tells: Whether everybody may know what this node publishes.
        prepare: Done before each look at the home, in a worker thread: what it signs is told at once.
        log: Hears of what went wrong inside: event and facts.
    """

    def __init__(
        self,
        store: GossipHome,
        private_key: bytes,
        clock: Clock,
        transport: GossipTransport,
        *,
        settings: GossipSettings,
        bootstrap: Sequence[PeerAddress] = (),
        allow_private: bool = False,
        read_signers: Callable[[], frozenset[DidKey]] = frozenset,
        sinks: Sequence[GossipSink] = (),
        tells: Callable[[], bool] = lambda: True,
        prepare: Callable[[], None] = lambda: None,
        log: Callable[..., None],
    ) -> None:
        self.machine = GossipMachine(settings, allow_private=allow_private)
        self.subscriptions: tuple[Subscription, ...] = ()
        self._settings = settings
        self._store = store
        self._key = private_key
        self._clock = clock
        self._transport = transport
        self._reader = HomeReader(store, tuple(bootstrap), read_signers, tells, prepare)
        self._sinks = tuple(sinks)
        self._log = log
        self._source = random.SystemRandom()
        self._addresses: tuple[PeerAddress, ...] = ()
        self._record_until_s = 0
        self._last_view: tuple[Interests, tuple[PeerAddress, ...]] | None = None
        self._accepted: list[Item] = []
        self._kept: list[Item] = []
        self._forgotten: list[bytes] = []
        self._saved: set[bytes] = set()
        self._sending: set[asyncio.Task[None]] = set()

    def receive(self, bucket: str, body: bytes) -> bytes | None:
        """See ``GossipReceiver``."""
        request = decode_request(body)
        reply = None
        for effect in self._handle(Received(bucket, request)):
            if isinstance(effect, Respond):
                reply = encode_gossip(effect.reply)
        return reply

    async def run(self, addresses: Sequence[PeerAddress], stop: asyncio.Event) -> None:
        """Gossip until told to stop.

        Args:
            addresses: Where this node can be reached; none: it asks and is not asked.
            stop: Ends it.
        """
        self._addresses = tuple(addresses)
        await self._restore()
        rounds = 0
        try:
            while not stop.is_set():
                await self._look_home()
                self._sign_record()
                self._handle(Tick())
                await self._write()
                rounds += 1
                if rounds % SAVE_ROUNDS == 0:
                    await self._save_peers()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.round_ms / 1000 * self._source.uniform(0.95, 1.05)):
                        await stop.wait()
        finally:
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
            await self._write()
            await self._save_peers()

    def find_news(self) -> dict[DatasetId, Item]:
        """Return the newest head that is known of each dataset that is subscribed to."""
        wanted = {subscription.dataset_id for subscription in self.subscriptions}
        newest: dict[DatasetId, Item] = {}
        for item in self.machine.store.iter_items():
            if item.kind is ItemKind.HEAD and item.dataset_id in wanted:
                known = newest.get(item.dataset_id)
                if known is None or item.rank > known.rank:
                    newest[item.dataset_id] = item
        return newest

    def list_sources(self) -> list[PeerAddress]:
        """Return peers that may have what there is news of: named ones, links, and some others that answer."""
        peers = self.machine.peers
        named = [peer.address.text for peer in peers.list_pinned()]
        others = [one.address.text for one in peers.iter_peers() if one.last_answer_ms is not None and not one.failures]
        self._source.shuffle(others)
        texts = dict.fromkeys((*named, *self.machine.links.targets(), *others))
        return [PeerAddress(text) for text in list(texts)[:MAX_SOURCES]]

    # Inside

    def _handle(self, event: Event) -> list[Effect]:
        effects = self.machine.handle(event, self._clock.now().unix_ms, self._source)
        for effect in effects:
            match effect:
                case Send():
                    self._start_sending(effect)
                case Accept(item=item):
                    self._accepted.append(item)
                    self._kept.append(item)
                case Forget(ids=ids):
                    self._forgotten += ids
        return effects

    def _start_sending(self, effect: Send) -> None:
        task = asyncio.get_running_loop().create_task(self._send(effect))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, effect: Send) -> None:
        address = PeerAddress(effect.address)
        peer = self.machine.peers.find(effect.address)
        try:
            if len(self._sending) > MAX_SENDING:
                raise MalformedError("gossip", expected=f"at most {MAX_SENDING} requests at once")
            reply = await self._transport.ask(address, effect.request, is_named=peer is not None and peer.pinned)
        except OdfError:
            self._handle(Failed(effect.address, effect.request))
        else:
            self._handle(Replied(effect.address, effect.request, reply))

    async def _restore(self) -> None:
        items, records = await asyncio.to_thread(
            lambda: (self._store.list_gossip_items(), self._store.list_peer_records())
        )
        read = await asyncio.to_thread(
            lambda: tuple(item for kept in items for item in _read_all(ItemKind(kept.kind), [kept.raw]))
        )
        await self._look_home()
        self._handle(Restore(read))
        if self._last_view is not None:
            self._tell_again(self._last_view[0].datasets)  # the node may have been killed before everybody had heard
        for raw in records:
            with suppress(OdfError):
                self.machine.peers.learn(decode_peer_record(raw), "restored", self._clock.now().unix_ms)

    async def _look_home(self) -> None:
        try:
            view = await asyncio.to_thread(self._reader.read)
        except OdfError as error:
            self._log("gossip-home", text=str(error))  # busy now; the next round looks again
            return
        self.subscriptions = view.subscriptions
        if self._last_view != (view.interests, view.pinned):
            before = frozenset() if self._last_view is None else self._last_view[0].datasets
            self._last_view = (view.interests, view.pinned)
            self._handle(SetInterests(view.interests))
            self._handle(SetPinned(view.pinned))
            self._tell_again(view.interests.datasets - before)
        if view.news:
            self._handle(Publish(view.news))

    def _tell_again(self, datasets: frozenset[DatasetId]) -> None:
        """Tell what was heard before about datasets that have begun to matter here (GOSSIP-55)."""
        if datasets:
            store = self.machine.store
            others = (item for item in store.iter_items() if store.introducer_of(item.id) != OWN)
            self._accepted += [item for item in others if item.dataset_id in datasets]

    def _sign_record(self) -> None:
        now = self._clock.now()
        # Also after a clock that was ahead: a record from the future would be nobody's newest for long.
        if RECORD_S // 2 < self._record_until_s - now.seconds <= RECORD_S:
            return
        self._record_until_s = now.seconds + RECORD_S
        record = sign_peer(
            self._key, addresses=self._addresses, time=now, expires=Timestamp(self._record_until_s, now.nanoseconds)
        )
        self._handle(SetRecord(record))

    async def _write(self) -> None:
        """Keep what arrived, then tell those who want to hear of it."""
        kept, forgotten, accepted = self._kept, self._forgotten, self._accepted
        self._kept, self._forgotten, self._accepted = [], [], []
        if not (kept or forgotten or accepted):
            return

        def write() -> None:
            if kept or forgotten:
                rows = [KeptItem(item.id, item.kind.value, item.raw) for item in kept]
                self._store.change_gossip_items(rows, forgotten)
            for item in accepted:
                self._tell_sinks(item)

        try:
            await asyncio.to_thread(write)
        except OdfError as error:
            self._log("gossip-store", text=str(error))
            self._kept, self._forgotten, self._accepted = kept, forgotten, accepted + self._accepted

    def _tell_sinks(self, item: Item) -> None:
        for sink in self._sinks:
            try:
                sink.accept(item)
            except Exception as error:  # noqa: BLE001 - one who cannot hear does not make the others deaf
                self._log("gossip-sink", sink=type(sink).__name__, text=f"{type(error).__name__}: {error}")

    async def _save_peers(self) -> None:
        records = [
            peer.record.raw
            for peer in self.machine.peers.iter_peers()
            if peer.record is not None and peer.last_answer_ms is not None
        ]
        if set(records) == self._saved:
            return
        self._saved = set(records)
        try:
            await asyncio.to_thread(self._store.replace_peer_records, records)
        except OdfError as error:
            self._log("gossip-store", text=str(error))


def find_address(text: str) -> PeerAddress | None:
    """Read an address that the operator wrote, in the spelling that gossip uses; None where gossip cannot use it."""
    with suppress(MalformedError):
        return PeerAddress.parse(text.rstrip("/").lower())
    return None


def _read_all(kind: ItemKind, documents: Iterable[bytes]) -> list[Item]:
    """Read what was kept here; what this version does not take as an item is left where it is."""
    items = []
    for raw in documents:
        with suppress(OdfError):
            items.append(read_item(kind, raw))
    return items
