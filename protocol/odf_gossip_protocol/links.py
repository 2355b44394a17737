"""The peers a node sends to: its active view.

Links *out* are this node's own choice, so nobody can take them by knocking often: one is kept for a peer that the
operator named, and no two lead into one address bucket while others can be had. Links *in* are asked for by their other
end, and given after it has answered at the address it names. A link ends when its peer does not answer a few times in a
row, and now and then without a reason, so that a bad choice does not last.

Source: clauses GOSSIP-43 to GOSSIP-48 in ``spec/plug-ins/gossip.md``.
"""

from dataclasses import dataclass
from typing import Final

from odf_gossip_protocol.peers import KnownPeer, PeerBook, Randomness
from odf_gossip_protocol.settings import GossipSettings

_MIN_LINKS: Final = 2
"""With fewer, a peer that has no room for us is sent to all the same."""


@dataclass(slots=True)
class _Link:
    greeted_round: int
    failures: int = 0


class Links:
    """The links of one node."""

    def __init__(self, settings: GossipSettings, peers: PeerBook) -> None:
        self._settings = settings
        self._peers = peers
        self._out: dict[str, _Link] = {}
        self._in: dict[str, _Link] = {}
        self._asked_in: dict[str, int] = {}
        self._courted: dict[str, int] = {}

    def targets(self) -> list[str]:
        """Return the addresses that news is sent to."""
        return [*self._out, *(address for address in self._in if address not in self._out)]

    def list_out(self) -> list[str]:
        """Return the addresses of this node's own choice."""
        return list(self._out)

    def is_settled(self, address: str) -> bool:
        """Say whether a peer is a link and need not be asked for others, as there are links enough."""
        return address in self._out and len(self._out) >= self._settings.out_links

    def pick_target(self, source: Randomness) -> str | None:
        """Choose one to reconcile with, of its own choice while there is one."""
        choice = list(self._out) or list(self._in)
        return choice[source.randrange(len(choice))] if choice else None

    def ask_in(self, peer: KnownPeer, round_: int) -> bool:
        """Promise a link to a peer that asks for one, if there is room; it is given when the peer has answered."""
        address = peer.address.text
        if address in self._in:
            self._in[address].greeted_round = round_
            return True
        if address in self._out:
            return True
        taken = [*self._in, *self._asked_in]
        of_bucket = [one for one in taken if self._bucket(one) == peer.address.bucket]
        if address not in self._asked_in:
            if len(taken) >= self._settings.in_links or len(of_bucket) >= 2 * self._settings.bucket_links:
                return False
            self._asked_in[address] = round_
        return True

    def answered(self, address: str, round_: int, *, linked: bool) -> bool:
        """Note the answer to a greeting; a peer that was greeted to become a link is one now. Say whether it is new.

        Whom this node greeted because they asked for a link gets that one, never one of its own choice.

        Args:
            address: Whose answer.
            round_: Now.
            linked: Whether the peer will send to this node as well, as far as it was asked to.
        """
        before = len(self._out) + len(self._in)
        if self._asked_in.pop(address, None) is not None:
            self._in[address] = _Link(round_)
        courted = self._courted.pop(address, None) is not None
        if (
            courted
            and address not in self._out
            and self._has_room_out(address)
            and (linked or len(self._out) < _MIN_LINKS)
        ):
            self._out[address] = _Link(round_)
        self.note_answer(address)
        return len(self._out) + len(self._in) > before

    def note_answer(self, address: str) -> None:
        """Note that a link's peer lives."""
        for table in (self._out, self._in):
            if address in table:
                table[address].failures = 0

    def failed(self, address: str) -> None:
        """Note that a peer did not answer; after some times in a row it is no link any more."""
        self._asked_in.pop(address, None)
        self._courted.pop(address, None)
        for table in (self._out, self._in):
            if address in table:
                table[address].failures += 1
                if table[address].failures >= self._settings.max_failures:
                    del table[address]

    def drop(self, address: str) -> None:
        """End a link at once."""
        for table in (self._out, self._in):
            table.pop(address, None)
        self._asked_in.pop(address, None)
        self._courted.pop(address, None)

    def tend(self, round_: int, now_ms: int, source: Randomness) -> list[tuple[KnownPeer, bool]]:
        """Do what a round asks for; return whom to greet, and whether to ask for a link."""
        limits = self._settings
        for address in [a for a, link in self._in.items() if round_ - link.greeted_round > limits.link_rounds]:
            del self._in[address]
        for address in [a for a, since in self._asked_in.items() if round_ - since > limits.max_failures]:
            del self._asked_in[address]
        if round_ % limits.rotate_rounds == 0:
            self._rotate(source)
        greeted: dict[str, tuple[KnownPeer, bool]] = {}
        for address in self._asked_in:
            self._greet(greeted, self._peers.find(address), as_link=False)
        self._fill(greeted, now_ms, source)
        if round_ % limits.hello_rounds == 0 and self._out:
            oldest = min(self._out, key=lambda address: self._out[address].greeted_round)
            self._out[oldest].greeted_round = round_
            self._greet(greeted, self._peers.find(oldest), as_link=True)
        if round_ % limits.probe_rounds == 0:
            self._greet(greeted, self._peers.pick(source, now_ms, avoid={*self._out, *greeted}), as_link=False)
        self._courted |= {address: round_ for address, (_, as_link) in greeted.items() if as_link}
        return list(greeted.values())

    def _fill(self, greeted: dict[str, tuple[KnownPeer, bool]], now_ms: int, source: Randomness) -> None:
        """Look for peers for the places that are free: named ones first, then one of each bucket, then any."""
        avoid = {*self._out, *greeted}
        pinned = [address for address in self._out if self._is_pinned(address)]
        if len(pinned) < self._settings.anchor_links or not self._out:
            self._greet(greeted, self._peers.pick_pinned(source, now_ms, avoid=avoid), as_link=True)
        free = self._settings.out_links - len(self._out)
        buckets = {self._bucket(address) for address in self._out}
        while free > 0:
            free -= 1
            avoid = {*self._out, *greeted}
            peer = self._peers.pick(source, now_ms, avoid=avoid, buckets=buckets)
            if peer is None and len(self._out) < _MIN_LINKS:
                peer = self._peers.pick(source, now_ms, avoid=avoid) or self._peers.pick_pinned(
                    source, now_ms, avoid=avoid
                )
            if peer is None:
                return
            buckets.add(peer.address.bucket)
            self._greet(greeted, peer, as_link=True)

    def _rotate(self, source: Randomness) -> None:
        movable = [address for address in self._out if not self._is_pinned(address)]
        if len(self._out) >= self._settings.out_links and movable:
            del self._out[movable[source.randrange(len(movable))]]

    def _has_room_out(self, address: str) -> bool:
        if self._peers.find(address) is None:
            return False
        if self._is_pinned(address):
            pinned = sum(self._is_pinned(one) for one in self._out)
            return pinned < self._settings.anchor_links or len(self._out) < self._settings.out_links
        of_bucket = sum(self._bucket(one) == self._bucket(address) for one in self._out)
        crowded = of_bucket >= self._settings.bucket_links and len(self._out) >= _MIN_LINKS
        return len(self._out) < self._settings.out_links and not crowded

    def _is_pinned(self, address: str) -> bool:
        peer = self._peers.find(address)
        return peer is not None and peer.pinned

    def _bucket(self, address: str) -> str:
        peer = self._peers.find(address)
        return address if peer is None else peer.address.bucket

    def _greet(self, greeted: dict[str, tuple[KnownPeer, bool]], peer: KnownPeer | None, *, as_link: bool) -> None:
        if peer is not None:
            greeted.setdefault(peer.address.text, (peer, as_link))
