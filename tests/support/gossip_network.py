"""A network of gossiping nodes in one process: a discrete-event simulator around the machines that nodes run.

Time, chance, delay and loss come from one seed, so one seed is one run. Messages are encoded and decoded as on a real
line. Signatures are verified by the machines' own reading of items, once for each distinct item: the rest of a run is
told from memory, which changes how long it takes and nothing else.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from odf_gossip_protocol import (
    Accept,
    Failed,
    GossipMachine,
    GossipSettings,
    Item,
    Publish,
    Received,
    Replied,
    Respond,
    Restore,
    Send,
    SetPinned,
    SetRecord,
    Tick,
    decode_reply,
    decode_request,
    encode_gossip,
)
from odf_gossip_protocol.effects import Event
from odf_gossip_protocol.messages import Compare, Feed, Items, Push, Ranges, Taken, Want
from odf_protocol.errors import OdfError
from odf_protocol.peer_addresses import PeerAddress, PeerRecord, decode_peer_record, sign_peer
from odf_protocol.timestamp import Timestamp
from support.gossip_items import remembered_item

START_MS = 1_714_564_800_000
"""2024-05-01T12:00:00Z."""
HEADER_BYTES = 400
"""Request or status line and headers of one HTTP message, as our client and server write them, rounded up."""
DAY_MS = 86_400_000

remembered_record = cache(decode_peer_record)


@dataclass(frozen=True)
class Line:
    """How bad the network is. Loss and duplication are of each message, so an exchange survives (1 - loss)²."""

    loss: float = 0.0
    duplication: float = 0.0
    min_delay_ms: int = 10
    max_delay_ms: int = 300
    timeout_ms: int = 3_000


class Stranger(Protocol):
    """Whoever answers at an address and is no node of ours."""

    def answer(self, network: "Network", sender_bucket: str, body: bytes) -> bytes | None:
        """Answer a request, or not."""
        ...


def address_of(number: int, *, network: int = 0) -> PeerAddress:
    """The address of a node: 400 networks of the size of a /16, of which each has a few nodes."""
    place = number % 400
    return PeerAddress(f"http://{20 + network * 4 + place // 200}.{place % 200}.{1 + number // 400}.1:8080")


@dataclass
class SimulatedNode:
    """One node: its machine, its clock, what it counts."""

    number: int
    key: bytes
    address: PeerAddress
    settings: GossipSettings
    skew_ms: int = 0
    reachable: bool = True
    pinned: tuple[PeerAddress, ...] = ()
    up: bool = True
    side: int = 0
    generation: int = 0
    sent_bytes: int = 0
    sent_for_items_bytes: int = 0
    known_at_ms: dict[bytes, int] = field(default_factory=dict)
    machine: GossipMachine = field(init=False)
    source: random.Random = field(init=False)

    def start(self, seed: int, now_ms: int, items: tuple[Item, ...] = ()) -> None:
        self.source = random.Random(f"{seed} {self.number} {self.generation}")
        self.machine = GossipMachine(self.settings, read=remembered_item, read_record=remembered_record)
        record = make_record(self.key, (self.address,) if self.reachable else (), now_ms + self.skew_ms)
        for event in (SetRecord(record), SetPinned(self.pinned), Restore(items)):
            self.machine.handle(event, now_ms + self.skew_ms, self.source)


@cache
def make_record(key: bytes, addresses: tuple[PeerAddress, ...], now_ms: int) -> PeerRecord:
    time = Timestamp.from_unix_ms(now_ms)
    return sign_peer(key, addresses=addresses, time=time, expires=Timestamp.from_unix_ms(now_ms + 5 * DAY_MS))


class Network:
    """Nodes, strangers, and the messages between them."""

    def __init__(self, seed: int, *, line: Line | None = None, settings: GossipSettings | None = None) -> None:
        self.seed = seed
        self.line = line or Line()
        self.settings = settings or GossipSettings()
        self.random = random.Random(seed)
        self.now_ms = START_MS
        self.nodes: list[SimulatedNode] = []
        self.strangers: dict[str, Stranger] = {}
        self.by_address: dict[str, SimulatedNode] = {}
        self.trace: list[tuple[int, int, str]] | None = None
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._counter = 0

    # Building

    def add(self, *, reachable: bool = True, pinned: tuple[PeerAddress, ...] = (), skew_ms: int = 0) -> SimulatedNode:
        number = len(self.nodes)
        key = (number + 1).to_bytes(4, "big") * 8
        node = SimulatedNode(
            number, key, address_of(number), self.settings, skew_ms=skew_ms, reachable=reachable, pinned=pinned
        )
        node.start(self.seed, self.now_ms)
        self.nodes.append(node)
        if reachable:
            self.by_address[node.address.text] = node
        self._schedule_tick(node, self.random.randrange(self.settings.round_ms))
        return node

    def introduce_all(self, count: int) -> None:
        """Let every node have heard of some others, as after a long time in the network."""
        reachable = [node for node in self.nodes if node.reachable]
        for node in self.nodes:
            for other in self.random.sample(reachable, min(count, len(reachable))):
                if other is not node:
                    record = make_record(other.key, (other.address,), START_MS - 60_000)
                    node.machine.peers.learn(record, other.address.bucket, self.now_ms)

    # Running

    def run_rounds(self, rounds: float) -> None:
        self.run_until(self.now_ms + int(rounds * self.settings.round_ms))

    def run_until(self, until_ms: int) -> None:
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
        self.now_ms = until_ms

    def tell(self, node: SimulatedNode, event: Event) -> None:
        """Hand an event to a node's machine and do what it says."""
        if self.trace is not None:
            self.trace.append((self.now_ms, node.number, type(event).__name__))
        for effect in node.machine.handle(event, self.now_ms + node.skew_ms, node.source):
            match effect:
                case Send():
                    self._send(node, effect)
                case Accept(item=item):
                    node.known_at_ms.setdefault(item.id, self.now_ms)

    def publish(self, node: SimulatedNode, *items: Item) -> None:
        for item in items:
            node.known_at_ms.setdefault(item.id, self.now_ms)
        self.tell(node, Publish(items))

    def stop(self, node: SimulatedNode) -> None:
        node.up = False

    def restart(self, node: SimulatedNode, *, keep: bool) -> None:
        """Start a node that was stopped; with what it had kept on disk, or with nothing."""
        items = tuple(node.machine.store.iter_items()) if keep else ()
        records = [peer.record for peer in node.machine.peers.iter_peers() if peer.record is not None] if keep else []
        node.generation += 1
        node.start(self.seed, self.now_ms, items)
        for record in records:
            node.machine.peers.learn(record, "restored", self.now_ms)
        if not keep:
            node.known_at_ms.clear()
        node.up = True

    def knowing(self, id_: bytes) -> int:
        return sum(id_ in node.machine.store for node in self.nodes)

    def shout(self, bucket: str, node: SimulatedNode, body: bytes) -> bytes | None:
        """Deliver a stranger's request at once; return the reply."""
        return self._deliver(bucket, node, body) if node.up else None

    # The line

    def _at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._counter += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._counter, action))

    def _schedule_tick(self, node: SimulatedNode, delay_ms: int) -> None:
        def tick() -> None:
            if node.up:
                self.tell(node, Tick())
            # Clocks drift apart a little, so rounds of different nodes do not stay in step.
            jitter = self.settings.round_ms // 20
            self._schedule_tick(node, self.settings.round_ms + self.random.randrange(-jitter, jitter + 1))

        self._at(delay_ms, tick)

    def _delay(self) -> int:
        return self.random.randrange(self.line.min_delay_ms, self.line.max_delay_ms + 1)

    def _send(self, node: SimulatedNode, effect: Send) -> None:
        body = encode_gossip(effect.request)
        node.sent_bytes += len(body) + HEADER_BYTES
        if isinstance(effect.request, Push | Want | Compare):
            node.sent_for_items_bytes += len(body) + HEADER_BYTES
        generation = node.generation
        ended = False

        def finish(reply: bytes | None) -> None:
            nonlocal ended
            if ended or not node.up or node.generation != generation:
                return
            ended = True
            if reply is None:
                self.tell(node, Failed(effect.address, effect.request))
                return
            try:
                decoded = decode_reply(reply)
            except OdfError:  # as the real host: what cannot be read is no reply
                self.tell(node, Failed(effect.address, effect.request))
                return
            self.tell(node, Replied(effect.address, effect.request, decoded))

        self._at(self.line.timeout_ms, lambda: finish(None))
        for _ in range(1 + (self.random.random() < self.line.duplication)):
            if self.random.random() >= self.line.loss:
                self._at(self._delay(), lambda: self._arrive(node, effect.address, body, finish))

    def _arrive(self, sender: SimulatedNode, address: str, body: bytes, finish: Callable[[bytes | None], None]) -> None:
        stranger = self.strangers.get(address)
        receiver = self.by_address.get(address)
        if stranger is not None:
            reply = stranger.answer(self, sender.address.bucket, body)
        elif receiver is None or not receiver.up or receiver.side != sender.side:
            return
        else:
            reply = self._deliver(sender.address.bucket, receiver, body)
            if reply is not None:
                receiver.sent_bytes += len(reply) + HEADER_BYTES
        if reply is not None and self.random.random() >= self.line.loss:
            self._at(self._delay(), lambda: finish(reply))

    def _deliver(self, bucket: str, node: SimulatedNode, body: bytes) -> bytes | None:
        try:
            request = decode_request(body)
        except OdfError:  # the real host answers 400
            return None
        if self.trace is not None:
            self.trace.append((self.now_ms, node.number, type(request).__name__))
        answer = None
        for effect in node.machine.handle(Received(bucket, request), self.now_ms + node.skew_ms, node.source):
            match effect:
                case Respond(reply=reply):
                    answer = encode_gossip(reply)
                    if isinstance(reply, Taken | Items | Ranges) or (isinstance(reply, Feed) and reply.items):
                        node.sent_for_items_bytes += len(answer) + HEADER_BYTES
                case Send():
                    self._send(node, effect)
                case Accept(item=item):
                    node.known_at_ms.setdefault(item.id, self.now_ms)
        return answer
