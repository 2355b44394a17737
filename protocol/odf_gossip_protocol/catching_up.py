"""How nodes catch up with each other: reconciliations that this node began, and logs of arrivals.

The log of what arrived here is for nodes that ask and cannot be asked; beside it stands how far this node has read the
logs of others.

Source: clauses GOSSIP-14 to GOSSIP-18, GOSSIP-39 and GOSSIP-40 in ``spec/plug-ins/gossip.md``.
"""

from collections import deque
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from odf_gossip_protocol.item import Item
from odf_gossip_protocol.messages import MAX_MESSAGE_ITEMS, Compare, Feed, Follow, ItemMessage, Ranges
from odf_gossip_protocol.peers import Randomness
from odf_gossip_protocol.ranges import NONCE_BYTES, IdRange, RangeDifference, compare_ranges, open_ranges
from odf_gossip_protocol.settings import GossipSettings
from odf_gossip_protocol.store import ItemStore


@dataclass(slots=True)
class _Session:
    nonce: bytes
    asked: tuple[IdRange, ...]
    steps: int = 1
    failures: int = 0

    def to_request(self) -> Compare:
        return Compare(nonce=self.nonce, ranges=self.asked)


class Reconciliations:
    """At most one with each peer."""

    def __init__(self, settings: GossipSettings, store: ItemStore) -> None:
        self._settings = settings
        self._store = store
        self._sessions: dict[str, _Session] = {}

    def __contains__(self, address: object) -> bool:
        return address in self._sessions

    def list_addresses(self) -> list[str]:
        """Return with whom one is under way."""
        return list(self._sessions)

    def begin(self, address: str, source: Randomness) -> Compare:
        """Begin one with a peer and return its first request."""
        nonce = source.randbytes(NONCE_BYTES)
        session = self._sessions[address] = _Session(nonce, open_ranges(self._store.ids, nonce))
        return session.to_request()

    def take(self, address: str, answer: Ranges) -> RangeDifference | None:
        """Read an answer; None where nothing was asked.

        Raises:
            MalformedError: No answer to what was asked.
        """
        session = self._sessions.get(address)
        if session is None:
            return None
        found = compare_ranges(self._store.ids, session.nonce, session.asked, answer.ranges)
        session.asked = found.left
        return found

    def go_on(self, address: str) -> Compare | None:
        """Return the next request, or None where the reconciliation is over."""
        session = self._sessions.get(address)
        if session is None:
            return None
        if not session.asked or session.steps >= self._settings.session_steps:
            del self._sessions[address]
            return None
        session.steps += 1
        return session.to_request()

    def try_again(self, address: str) -> bool:
        """Note that a request got no reply; say whether to send it again. If not, the reconciliation is over."""
        session = self._sessions.get(address)
        if session is None:
            return False
        session.failures += 1
        if session.failures >= self._settings.push_attempts:
            del self._sessions[address]
            return False
        return True

    def end(self, address: str) -> None:
        """Give one up."""
        self._sessions.pop(address, None)


REPLY_BYTES: Final = 256 * 1024
"""Raw bytes of items in one reply, the first item aside: base64 of it fits into a message."""


def fit_items(items: list[Item]) -> tuple[ItemMessage, ...]:
    """Take as many items as fit into a reply, at least one if there is any."""
    fitting: list[ItemMessage] = []
    size_bytes = 0
    for item in items[:MAX_MESSAGE_ITEMS]:
        size_bytes += len(item.raw)
        if fitting and size_bytes > REPLY_BYTES:
            break
        fitting.append(ItemMessage.of(item))
    return tuple(fitting)


class ArrivalLog:
    """Ids in the order of their arrival, the newest few thousand; begun anew with the process."""

    def __init__(self, settings: GossipSettings, store: ItemStore, epoch: bytes) -> None:
        self._store = store
        self._epoch = epoch
        self._entries: deque[tuple[int, bytes]] = deque(maxlen=settings.max_log)
        self._next = 0

    def append(self, id_: bytes) -> None:
        """Note an arrival."""
        self._entries.append((self._next, id_))
        self._next += 1

    def answer(self, follow: Follow) -> Feed:
        """Give what arrived after a place in the log; for another log than this one, only where this one ends."""
        if follow.epoch != self._epoch:
            return Feed(epoch=self._epoch, next=self._next)
        later = [(place, id_) for place, id_ in self._entries if place >= follow.after and id_ in self._store]
        items = [item for _, id_ in later if (item := self._store.find(id_)) is not None]
        fitting = fit_items(items)
        end = later[len(fitting)][0] if len(fitting) < len(later) else self._next
        return Feed(epoch=self._epoch, next=end, items=fitting)


class Following:
    """How far the logs of others were read, and whose answer is awaited."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[bytes, int]] = {}
        self._awaited: set[str] = set()

    def ask(self, address: str) -> Follow | None:
        """Return the next request to a peer; None while an answer is awaited."""
        if address in self._awaited:
            return None
        self._awaited.add(address)
        epoch, after = self._places.get(address, (None, 0))
        return Follow(epoch=epoch, after=after)

    def answered(self, address: str, feed: Feed) -> None:
        """Note how far a log was read."""
        self._awaited.discard(address)
        self._places[address] = (feed.epoch, feed.next)

    def failed(self, address: str) -> None:
        """Note that no answer came."""
        self._awaited.discard(address)

    def keep(self, addresses: Container[str]) -> None:
        """Forget everybody else."""
        self._places = {address: place for address, place in self._places.items() if address in addresses}
