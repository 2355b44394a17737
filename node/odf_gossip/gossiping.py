"""Gossip in a running node: the machine's clock, memory, ears and mouth.

The machine runs on the event loop alone. What it says is done in tasks: requests go out through the transport, items
go to the disk and then, in order of arrival, to those who want to hear of them. What this node has to say itself is
looked up each round, as other processes (``ingest``, ``pull``) write there too.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from odf_gossip.home_reading import HomeReader, read_items
from odf_gossip.ports import GossipSink, GossipTransport
from odf_gossip_protocol import (
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
    Notify,
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
    decode_request,
    encode_gossip,
)
from odf_gossip_protocol.store import OWN
from odf_node.ports.clock import Clock
from odf_node.records.datasets import Subscription
from odf_node.records.peers import KeptItem
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, OdfError, UnavailableError
from odf_protocol.peer_addresses import PeerAddress, decode_peer_record, sign_peer
from odf_protocol.timestamp import Timestamp

RECORD_S: Final = 2 * 86_400
"""How long a record of this node holds; it is signed again after half of it.  # guess"""
SAVE_ROUNDS: Final = 30  # guess: a minute's worth of new peers may be lost with the power
MAX_SOURCES: Final = 64  # guess: asked in one attempt; the next one asks others
MAX_SENDING: Final = 64  # guess: requests on their way at once; more count as failed


class Gossip:
    """``GossipReceiver``, and the loop around it.

    Args:
        reader: Knows what is new here.
        peers: Those that answered, from run to run.
        gossip: Items, from run to run.
        private_key: Of this node.
        clock: Time of statements.
        transport: To peers.
        settings: Of the machine.
        allow_private: Whether private addresses that peers name may be used.
        sinks: Who hears of what arrives.
        log: Hears of what went wrong inside: event and facts.
    """

    def __init__(
        self,
        reader: HomeReader,
        store: MetadataStore,
        private_key: bytes,
        clock: Clock,
        transport: GossipTransport,
        *,
        settings: GossipSettings,
        allow_private: bool = False,
        sinks: Sequence[GossipSink] = (),
        log: Callable[..., None],
    ) -> None:
        self.machine = GossipMachine(settings, allow_private=allow_private)
        self.subscriptions: tuple[Subscription, ...] = ()
        self._settings = settings
        self._reader = reader
        self._store = store
        self._key = private_key
        self._clock = clock
        self._transport = transport
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
                case Notify(item=item):
                    self._accepted.append(item)
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
            lambda: tuple(item for kept in items for item in read_items(ItemKind(kept.kind), [kept.raw]))
        )
        await self._look_home()
        self._handle(Restore(read))
        if self._last_view is not None:
            self._notify_again(self._last_view[0].datasets)  # the node may have been killed before everybody had heard
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
            self._notify_again(view.interests.datasets - before)
        if view.news:
            self._handle(Publish(view.news))

    def _notify_again(self, datasets: frozenset[DatasetId]) -> None:
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

        def write() -> list[Item]:
            if kept or forgotten:
                rows = [KeptItem(item.id, item.kind.value, item.raw) for item in kept]
                self._store.change_gossip_items(rows, forgotten)
            return [item for item in accepted if not self._notify_sinks(item)]

        try:
            self._accepted = await asyncio.to_thread(write) + self._accepted
        except OdfError as error:
            self._log("gossip-store", text=str(error))
            self._kept, self._forgotten, self._accepted = kept, forgotten, accepted + self._accepted

    def _notify_sinks(self, item: Item) -> bool:
        """Tell all; whether none of them has to be told again, since it could not hear just now (GOSSIP-55)."""
        is_heard = True
        for sink in self._sinks:
            try:
                sink.accept(item)
            except Exception as error:  # noqa: BLE001 - one who cannot hear does not make the others deaf
                self._log("gossip-sink", sink=type(sink).__name__, text=f"{type(error).__name__}: {error}")
                is_heard = is_heard and not isinstance(error, UnavailableError)
        return is_heard

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
