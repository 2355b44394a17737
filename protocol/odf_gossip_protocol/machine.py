"""The gossiping node as a machine: events and the time go in, effects come out, nothing else happens.

======================  ==============================================================================
event                   the host tells
======================  ==============================================================================
``Tick``                a round has passed
``Publish``             this node has something to say
``Received``            a request came in; the effects hold its reply
``Replied``, ``Failed``  what became of a request that was sent
``SetRecord`` ...       the operator or the node itself has changed something
======================  ==============================================================================

How news travels (GOSSIP-37 to GOSSIP-41):

1. What is new here is pushed to all links at the next round; proofs of equivocation at once and before all else.
2. What a push could not reach is found by comparing fingerprints with a random link every few rounds.
3. A node that cannot be reached follows the arrival logs of a few links instead.

The same input gives the same effects: order of dictionaries is order of insertion, chance comes from ``source``.
"""

from collections.abc import Callable
from typing import Final

from odf_gossip_protocol.catching_up import ArrivalLog, Following, Reconciliations, fit_items
from odf_gossip_protocol.effects import (
    Accept,
    Effect,
    Event,
    Failed,
    Forget,
    Notify,
    Publish,
    Received,
    Reject,
    Replied,
    Respond,
    Restore,
    Send,
    SetInterests,
    SetPinned,
    SetRecord,
    Tick,
)
from odf_gossip_protocol.item import Item, ItemKind, item_id, read_item
from odf_gossip_protocol.links import Links
from odf_gossip_protocol.messages import (
    Compare,
    Feed,
    Follow,
    Hello,
    ItemMessage,
    Items,
    Push,
    Ranges,
    Reply,
    Request,
    Taken,
    Want,
    Welcome,
)
from odf_gossip_protocol.outboxes import Outboxes
from odf_gossip_protocol.peers import PeerBook, Randomness
from odf_gossip_protocol.ranges import NONCE_BYTES, answer_ranges
from odf_gossip_protocol.settings import GossipSettings, Rates, Strikes
from odf_gossip_protocol.store import OWN, ItemStore, ItemVerdict
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.peer_addresses import PeerAddress, PeerRecord, decode_peer_record

_SMALL_CATCH_UP: Final = 16
"""So few new items in one reply are news, and pushed on; more are a past that others have."""
_EXPIRE_ROUNDS: Final = 16


class GossipMachine:
    """One node's part in the gossip.

    Args:
        settings: What it may spend.
        allow_private: Whether addresses of private networks that peers name may be connected to.
        read: Verifies and reads an item; another one than ``read_item`` may remember what it has verified.
        read_record: The same for peer records.
    """

    def __init__(
        self,
        settings: GossipSettings,
        *,
        allow_private: bool = False,
        read: Callable[[ItemKind, bytes], Item] = read_item,
        read_record: Callable[[bytes], PeerRecord] = decode_peer_record,
    ) -> None:
        self.store = ItemStore(settings)
        self.peers = PeerBook(settings, allow_private=allow_private)
        self.links = Links(settings, self.peers)
        self._settings = settings
        self._read = read
        self._read_record = read_record
        self._record: PeerRecord | None = None
        self._round = 0
        self._reconciliations = 0
        self._outboxes = Outboxes(settings, self.store)
        self._sessions = Reconciliations(settings, self.store)
        self._following = Following()
        self._own_addresses: set[str] = set()
        self._log: ArrivalLog | None = None
        self._effects: list[Effect] = []
        keys = settings.rate_buckets
        self._requests: Rates[str] = Rates(
            per_s=settings.rate_requests_per_s, burst=settings.rate_burst_requests, keys=keys
        )
        self._pushes: Rates[str] = Rates(per_s=settings.rate_items_per_s, burst=settings.rate_burst_items, keys=keys)
        self._heads: Rates[DatasetId] = Rates(
            per_s=settings.origin_heads_per_s, burst=settings.origin_burst_heads, keys=keys
        )
        self._strikes: Strikes[str] = Strikes(most=settings.max_strikes, ban_ms=settings.ban_ms, keys=keys)

    def handle(self, event: Event, now_ms: int, source: Randomness) -> list[Effect]:
        """Take an event and return what the host is to do, in order.

        Args:
            event: What happened.
            now_ms: This node's clock, milliseconds since 1970; it may be set back.
            source: Decides whatever is left to chance.
        """
        self._effects = []
        if self._log is None:
            self._log = ArrivalLog(self._settings, self.store, source.randbytes(NONCE_BYTES))
        match event:
            case Tick():
                self._tick(now_ms, source)
            case Publish(items=items):
                for item in items:
                    self._admit(item, OWN, now_ms, came_from=None, push_on=True)
            case Restore(items=items):
                for item in items:
                    self.store.admit(item, "restored", now_ms)
            case Received():
                self._receive(event, now_ms, source)
            case Replied(address=address, request=request, reply=reply):
                self._take_reply(address, request, reply, now_ms, source)
            case Failed(address=address, request=request):
                self._note_failure(address, request, now_ms)
            case SetRecord(record=record):
                self._record = record
            case SetInterests(interests=interests):
                self.store.set_interests(interests)
            case SetPinned(addresses=addresses):
                self._set_pinned(addresses)
        effects, self._effects = self._effects, []
        return effects

    # Requests of others

    def _receive(self, event: Received, now_ms: int, source: Randomness) -> None:
        bucket = event.bucket
        if self._strikes.is_banned(bucket, now_ms) or not self._requests.take(bucket, now_ms):
            self._effects.append(Reject())
            return
        try:
            reply = self._reply_to(event.request, bucket, now_ms, source)
        except OdfError:
            self._strikes.add(bucket, now_ms)
            self._effects.append(Reject())
            return
        self._effects.insert(0, Respond(reply))

    def _reply_to(self, request: Request, bucket: str, now_ms: int, source: Randomness) -> Reply:
        match request:
            case Hello():
                return self._welcome(request, bucket, now_ms, source)
            case Push(items=items):
                self._take_items(items, bucket, now_ms, came_from=None, solicited=False)
                return Taken()
            case Compare(nonce=nonce, ranges=asked):
                return Ranges(ranges=answer_ranges(self.store.ids, nonce, asked))
            case Want(ids=ids):
                found = (self.store.find(id_) for id_ in ids)
                return Items(items=fit_items([item for item in found if item is not None]))
            case Follow():
                assert self._log is not None
                return self._log.answer(request)

    def _welcome(self, hello: Hello, bucket: str, now_ms: int, source: Randomness) -> Welcome:
        linked = False
        if hello.record is not None:
            record = self._read_record(hello.record)
            peer = self.peers.learn(record, bucket, now_ms)
            if peer is not None and hello.link:
                linked = self.links.ask_in(peer, self._round)
        return Welcome(
            record=None if self._record is None else self._record.raw,
            linked=linked,
            peers=self.peers.sample(source, now_ms, links=self.links.targets()) if hello.peers else (),
        )

    # Replies to this node

    def _take_reply(self, address: str, request: Request, reply: Reply, now_ms: int, source: Randomness) -> None:
        try:
            match request, reply:
                case Hello(), Welcome():
                    self._take_welcome(address, request, reply, now_ms, source)
                case Push(), Taken():
                    self._outboxes.arrived(address)
                    self._note_answer(address, now_ms)
                case Compare(), Ranges():
                    self._note_answer(address, now_ms)
                    self._compare(address, reply, now_ms)
                case Want(), Items():
                    self._note_answer(address, now_ms)
                    wanted = set(request.ids)
                    asked_for = tuple(one for one in reply.items if one.find_id() in wanted)
                    self._take_items(asked_for, self._bucket_of(address), now_ms, came_from=address, solicited=True)
                    self._go_on(address)
                case Follow(), Feed():
                    self._note_answer(address, now_ms)
                    self._following.answered(address, reply)
                    self._take_items(reply.items, self._bucket_of(address), now_ms, came_from=address, solicited=True)
                    if request.epoch != reply.epoch:
                        self._reconcile(address, source)  # what the log held before this place is not told
                case _:
                    raise MalformedError("gossip reply", expected=f"one to {request}", found=reply)
        except OdfError:
            self._punish(address, now_ms)

    def _take_welcome(self, address: str, hello: Hello, welcome: Welcome, now_ms: int, source: Randomness) -> None:
        record = None if welcome.record is None else self._read_record(welcome.record)
        if record is not None and self._record is not None and record.node == self._record.node:
            self._own_addresses.add(address)  # this node itself, under an address that somebody named
            self.peers.unpin(address)
            self.links.drop(address)
            self.peers.drop(address)
            return
        self.peers.answered(address, record, now_ms)
        if self.links.answered(address, self._round, linked=welcome.linked or not hello.link):
            self._reconcile(address, source)
        bucket = self._bucket_of(address)
        for raw in welcome.peers[: self._settings.sample_peers]:
            other = self._read_record(raw)
            if self._record is None or other.node != self._record.node:
                self.peers.learn(other, bucket, now_ms)

    def _note_answer(self, address: str, now_ms: int) -> None:
        self.peers.answered(address, None, now_ms)
        self.links.note_answer(address)

    def _note_failure(self, address: str, request: Request, now_ms: int) -> None:
        self.peers.failed(address, now_ms)
        self.links.failed(address)
        self._following.failed(address)
        match request:
            case Push():
                self._outboxes.failed(address)
            case Compare() | Want():
                self._send(address, request if self._sessions.try_again(address) else None)
        self._close_unlinked()

    def _punish(self, address: str, now_ms: int) -> None:
        """Have nothing to do with a peer that said what no honest node says, for a time."""
        self._strikes.add(self._bucket_of(address), now_ms)
        self._sessions.end(address)
        self._following.failed(address)
        self.peers.failed(address, now_ms)
        self.links.drop(address)
        self.peers.drop(address)
        self._close_unlinked()

    # Items

    def _take_items(
        self, items: tuple[ItemMessage, ...], bucket: str, now_ms: int, *, came_from: str | None, solicited: bool
    ) -> None:
        """Take items from one bucket; one that is not good ends the message and is counted against it."""
        push_on = not solicited or len(items) <= _SMALL_CATCH_UP
        for message in items:
            kind = message.find_kind()
            if kind is None or not self.store.is_wanted(item_id(kind, message.raw)):
                continue
            if not solicited and not self._pushes.take(bucket, now_ms):
                return  # not forgotten: a reconciliation will bring what is left
            item = self._read(kind, message.raw)
            is_news = item.kind is ItemKind.HEAD and self.store.judge(item, now_ms) is ItemVerdict.NEW
            if is_news and not self._heads.take(item.dataset_id, now_ms):
                continue  # an owner in a hurry is heard at intervals; each time it is the newest head that comes
            self._admit(item, bucket, now_ms, came_from=came_from, push_on=push_on)

    def _admit(self, item: Item, introducer: str, now_ms: int, *, came_from: str | None, push_on: bool) -> None:
        admission = self.store.admit(item, introducer, now_ms)
        if admission.removed:
            self._effects.append(Forget(admission.removed))
        if admission.verdict is ItemVerdict.NEW:
            assert self._log is not None
            self._log.append(item.id)
            if introducer != OWN:
                self._effects.append(Accept(item, came_from))
            if push_on or item.kind is ItemKind.EQUIVOCATION:
                self._spread(item, came_from)
        elif admission.is_older_head and introducer != OWN:
            self._effects.append(Notify(item))
        for proof in admission.proofs:
            self._admit(proof, introducer, now_ms, came_from=came_from, push_on=True)

    def _spread(self, item: Item, came_from: str | None) -> None:
        for address in self.links.targets():
            if address == came_from:
                continue
            self._outboxes.put(address, item)
            if item.kind is ItemKind.EQUIVOCATION:
                self._flush(address)

    def _flush(self, address: str) -> None:
        self._send(address, self._outboxes.take_push(address))

    def _send(self, address: str, request: Request | None) -> None:
        if request is not None:
            self._effects.append(Send(address, request))

    def _begin_reconciliation(self, now_ms: int, source: Randomness) -> None:
        self._reconciliations += 1
        address = self.links.pick_target(source)
        if address is None or self._reconciliations % self._settings.anchor_reconciles == 0:
            pinned = self.peers.pick_pinned(source, now_ms, avoid=self._sessions.list_addresses())
            address = pinned.address.text if pinned is not None else address
        if address is not None:
            self._reconcile(address, source)

    def _reconcile(self, address: str, source: Randomness) -> None:
        if address not in self._sessions:
            self._send(address, self._sessions.begin(address, source))

    def _compare(self, address: str, reply: Ranges, now_ms: int) -> None:
        found = self._sessions.take(address, reply)
        if found is None:
            return
        extra = [item for id_ in found.extra if (item := self.store.find(id_)) is not None]
        self._outboxes.put_once(address, [one for one in extra if one.expires_ms is None or one.expires_ms > now_ms])
        self._flush(address)
        wanted = tuple(id_ for id_ in found.missing if self.store.is_wanted(id_))[: self._settings.want_items]
        if wanted:
            self._send(address, Want(ids=wanted))
        else:
            self._go_on(address)

    def _go_on(self, address: str) -> None:
        self._send(address, self._sessions.go_on(address))
        self._close_unlinked()

    def _tick(self, now_ms: int, source: Randomness) -> None:
        self._round += 1
        gone = self.store.expire(now_ms)
        if gone:
            self._effects.append(Forget(tuple(gone)))
        if self._round % _EXPIRE_ROUNDS == 0:
            self.peers.expire(now_ms)
        record = self._record if self._record is not None and self._record.addresses else None
        for peer, as_link in self.links.tend(self._round, now_ms, source):
            address = peer.address.text
            hello = Hello(
                record=None if record is None else record.raw,
                link=as_link and record is not None,
                peers=not self.links.is_settled(address),
            )
            self._send(address, hello)
        self._close_unlinked()
        if self._round % self._settings.reconcile_rounds == self._settings.reconcile_rounds - 1:
            self._begin_reconciliation(now_ms, source)
        if record is None:
            for address in self.links.list_out()[: self._settings.feed_peers]:
                self._send(address, self._following.ask(address))
        for address in self._outboxes.list_addresses():
            self._flush(address)

    def _set_pinned(self, addresses: tuple[PeerAddress, ...]) -> None:
        wanted = {address.text for address in addresses} - self._own_addresses
        for peer in self.peers.list_pinned():
            if peer.address.text not in wanted:
                self.peers.unpin(peer.address.text)
        for address in addresses:
            known = self.peers.find(address.text)
            if address.text in wanted and (known is None or not known.pinned):
                self.peers.pin(address)

    def _close_unlinked(self) -> None:
        """Forget what waits for peers that nothing is sent to any more."""
        self._outboxes.keep({*self.links.targets(), *self._sessions.list_addresses()})
        self._following.keep(self.links.list_out())

    def _bucket_of(self, address: str) -> str:
        peer = self.peers.find(address)
        return PeerAddress.parse(address).bucket if peer is None else peer.address.bucket
