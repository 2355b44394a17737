"""The peers a node knows of but need not talk to: its passive view.

Three tables, so that no stranger can fill what counts:

- *pinned*: added by hand or from the bootstrap list. Never pushed out by anything that peers say.
- *tried*: answered at their address at least once. A peer that still answers is not pushed out by one that was only
  heard of.
- *fresh*: only heard of. Whoever introduced most loses their oldest.

In *tried* and *fresh* one address bucket has a few places only, so that a thousand names on one machine are few peers.
That a peer is dead is never told to others and never taken from them: everybody judges by their own attempts, so nobody
can be talked out of their peers.

Source: clauses GOSSIP-31 to GOSSIP-36 in ``spec/plug-ins/gossip.md``.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from odf_gossip_protocol.settings import GossipSettings
from odf_protocol.did import DidKey
from odf_protocol.peer_addresses import PeerAddress, PeerRecord


class Randomness(Protocol):
    """Where randomness comes from; ``random.Random`` and ``random.SystemRandom`` are such."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 on, below ``stop``."""
        ...

    def randbytes(self, n: int, /) -> bytes:
        """Return ``n`` bytes."""
        ...


@dataclass(slots=True, kw_only=True)
class KnownPeer:
    """A peer at an address.

    Attributes:
        address: Where it is asked.
        introducer: Address bucket of who named it first.
        pinned: Whether the operator named it.
        record: Its own word about itself; None until it was heard.
        failures: Attempts in a row without an answer.
        last_answer_ms: When it answered last; None: never.
        failed_ms: When it failed last.
        retry_at_ms: Not to be tried from then until here.
    """

    address: PeerAddress
    introducer: str
    pinned: bool = False
    record: PeerRecord | None = None
    failures: int = 0
    last_answer_ms: int | None = None
    failed_ms: int = 0
    retry_at_ms: int = 0

    def is_ready(self, now_ms: int) -> bool:
        """Say whether it may be tried; a clock that was set back behind its failure makes it wait no longer."""
        return not self.failed_ms <= now_ms < self.retry_at_ms

    @property
    def node(self) -> DidKey | None:
        """Who is there, by the record."""
        return None if self.record is None else self.record.node


class PeerBook:
    """The peers of one node, by address."""

    def __init__(self, settings: GossipSettings, *, allow_private: bool) -> None:
        self._settings = settings
        self._allow_private = allow_private
        self._pinned: dict[str, KnownPeer] = {}
        self._tried: dict[str, KnownPeer] = {}
        self._fresh: dict[str, KnownPeer] = {}
        self._address_of: dict[DidKey, str] = {}

    def __len__(self) -> int:
        return len(self._pinned) + len(self._tried) + len(self._fresh)

    def find(self, address: str) -> KnownPeer | None:
        """Return the peer at an address, or None."""
        return self._pinned.get(address) or self._tried.get(address) or self._fresh.get(address)

    def iter_peers(self) -> Iterator[KnownPeer]:
        """Yield all peers: pinned, tried, fresh."""
        for table in (self._pinned, self._tried, self._fresh):
            yield from table.values()

    def list_pinned(self) -> list[KnownPeer]:
        """Return the peers that the operator named."""
        return list(self._pinned.values())

    def may_connect(self, address: PeerAddress) -> bool:
        """Say whether an address that a stranger named may be connected to (GOSSIP-9)."""
        return self._allow_private or address.is_public

    def pin(self, address: PeerAddress) -> None:
        """Take a peer that the operator named; it need not be public, as the operator said so."""
        known = self._remove(address.text) or KnownPeer(address=address, introducer="")
        known.pinned = True
        self._insert(self._pinned, known)

    def unpin(self, address: str) -> None:
        """Forget a peer that the operator takes back."""
        if address in self._pinned:
            self._remove(address)

    def learn(self, record: PeerRecord, introducer: str, now_ms: int) -> KnownPeer | None:
        """Take a record that somebody passed on; return the peer if it is known now."""
        address = next((one for one in record.addresses if self.may_connect(one)), None)
        if address is None or not record.time.unix_ms - self._settings.future_ms <= now_ms < record.expires.unix_ms:
            return None
        held = self._find_node(record.node)
        if held is not None:
            if held.record is None or record.time <= held.record.time:
                return held
            if held.pinned or held.address == address:
                held.record = record
                return held
            self._remove(held.address.text)  # it has moved, and says so itself
        known = self.find(address.text)
        if known is not None:
            if known.record is None:
                known.record = record
                self._address_of[record.node] = address.text
            return known  # somebody else answers there; the one that answers decides, at the next contact
        peer = KnownPeer(address=address, introducer=introducer, record=record)
        return peer if self._enter_fresh(peer) else None

    def answered(self, address: str, record: PeerRecord | None, now_ms: int) -> None:
        """Note that a peer answered, and what it said about itself."""
        peer = self.find(address)
        if peer is None:
            return
        peer.failures = 0
        peer.last_answer_ms = now_ms
        peer.retry_at_ms = now_ms
        # A record counts for an address that it names; else anybody could take a place by showing another's record.
        if record is not None and now_ms < record.expires.unix_ms and peer.record != record:
            if peer.address in record.addresses:
                self._settle(peer, record)
            elif peer.pinned:
                peer.record = record
        if address in self._fresh and self._make_place(self._tried, peer, self._settings.tried_peers):
            del self._fresh[address]
            self._tried[address] = peer

    def failed(self, address: str, now_ms: int) -> None:
        """Note that a peer did not answer."""
        peer = self.find(address)
        if peer is None:
            return
        peer.failures += 1
        rounds = min(self._settings.max_backoff_rounds, 2 ** min(peer.failures, 16))
        peer.failed_ms = now_ms
        peer.retry_at_ms = now_ms + rounds * self._settings.round_ms
        if address in self._fresh and peer.failures >= self._settings.fresh_failures:
            self._remove(address)

    def drop(self, address: str) -> None:
        """Forget a peer that lied; a pinned one stays, for the operator to judge, and waits."""
        if address not in self._pinned:
            self._remove(address)

    def expire(self, now_ms: int) -> None:
        """Forget peers whose word has run out, pinned ones aside."""
        for table in (self._tried, self._fresh):
            for address, peer in list(table.items()):
                if peer.record is not None and peer.record.expires.unix_ms <= now_ms:
                    self._remove(address)

    def pick(
        self, source: Randomness, now_ms: int, *, avoid: Container[str], buckets: Container[str] = ()
    ) -> KnownPeer | None:
        """Choose a peer to talk to: from *tried* or *fresh* with equal chance, so that neither can be crowded out.

        Args:
            source: Decides.
            now_ms: Peers that wait after a failure are passed over.
            avoid: Addresses not to choose.
            buckets: Address buckets not to choose from.
        """
        tables = [self._tried, self._fresh]
        if source.randrange(2):
            tables.reverse()
        for table in tables:
            ready = [
                peer
                for address, peer in table.items()
                if address not in avoid and peer.is_ready(now_ms) and peer.address.bucket not in buckets
            ]
            if ready:
                return ready[source.randrange(len(ready))]
        return None

    def pick_pinned(self, source: Randomness, now_ms: int, *, avoid: Container[str]) -> KnownPeer | None:
        """Choose a pinned peer that is due."""
        ready = [p for a, p in self._pinned.items() if a not in avoid and p.is_ready(now_ms)]
        return ready[source.randrange(len(ready))] if ready else None

    def sample(self, source: Randomness, now_ms: int, *, links: Sequence[str]) -> tuple[bytes, ...]:
        """Choose records to pass on: of peers that answered this node itself, at most one of each bucket."""
        pool = [
            peer
            for table in (self._pinned, self._tried)
            for peer in table.values()
            if peer.record is not None and peer.failures == 0 and peer.last_answer_ms is not None
        ]
        pool += [peer for peer in map(self._fresh.get, links) if peer is not None and peer.record is not None]
        chosen: dict[str, bytes] = {}
        while pool and len(chosen) < self._settings.sample_peers:
            peer = pool.pop(source.randrange(len(pool)))
            record = peer.record
            if record is None or not record.addresses or record.expires.unix_ms <= now_ms:
                continue
            if self._allow_private or record.addresses[0].is_public:
                chosen.setdefault(record.addresses[0].bucket, record.raw)
        return tuple(chosen.values())

    def _settle(self, peer: KnownPeer, record: PeerRecord) -> None:
        """Believe who answers at an address; what was known of the node under another one goes."""
        other = self._find_node(record.node)
        if other is not None and other is not peer and not other.pinned:
            self._remove(other.address.text)
        if peer.node is not None and self._address_of.get(peer.node) == peer.address.text:
            del self._address_of[peer.node]
        peer.record = record
        self._address_of[record.node] = peer.address.text

    def _find_node(self, node: DidKey) -> KnownPeer | None:
        address = self._address_of.get(node)
        return None if address is None else self.find(address)

    def _insert(self, table: dict[str, KnownPeer], peer: KnownPeer) -> None:
        table[peer.address.text] = peer
        if peer.node is not None:
            self._address_of[peer.node] = peer.address.text

    def _remove(self, address: str) -> KnownPeer | None:
        for table in (self._pinned, self._tried, self._fresh):
            peer = table.pop(address, None)
            if peer is not None:
                if peer.node is not None and self._address_of.get(peer.node) == address:
                    del self._address_of[peer.node]
                return peer
        return None

    def _enter_fresh(self, peer: KnownPeer) -> bool:
        of_introducer = [a for a, one in self._fresh.items() if one.introducer == peer.introducer]
        if len(of_introducer) >= self._settings.introduced_peers:
            self._remove(of_introducer[0])
        if not self._make_place(self._fresh, peer, self._settings.new_peers):
            return False
        self._insert(self._fresh, peer)
        return True

    def _make_place(self, table: dict[str, KnownPeer], peer: KnownPeer, most: int) -> bool:
        """Make room in a table and in its bucket; say whether there is any now."""
        bucket = peer.address.bucket
        of_bucket = [address for address, one in table.items() if one.address.bucket == bucket]
        if len(of_bucket) >= self._settings.bucket_peers and not self._remove_failing(table, of_bucket):
            return False
        if len(table) < most or self._remove_failing(table, list(table)):
            return True
        if table is self._tried:
            return False
        introducers = Counter(one.introducer for one in table.values())
        loudest = max(introducers, key=lambda name: (introducers[name], name))
        if introducers[loudest] <= introducers[peer.introducer]:
            return False
        self._remove(next(address for address, one in table.items() if one.introducer == loudest))
        return True

    def _remove_failing(self, table: dict[str, KnownPeer], addresses: Sequence[str]) -> bool:
        worst = max(addresses, key=lambda address: table[address].failures)
        if table[worst].failures == 0:
            return False
        self._remove(worst)
        return True
