"""Reconciliations that this node began: which ranges were asked for, and what the answers showed.

Source: clauses GOSSIP-14 to GOSSIP-18 in ``spec/extensions/gossip.md``.
"""

from dataclasses import dataclass

from odf_protocol.gossip.messages import Compare, RangeMessage, Ranges
from odf_protocol.gossip.peers import Randomness
from odf_protocol.gossip.ranges import NONCE_BYTES, Difference, Range, compare_ranges, open_ranges
from odf_protocol.gossip.settings import GossipSettings
from odf_protocol.gossip.store import ItemStore


@dataclass(slots=True)
class _Session:
    nonce: bytes
    asked: tuple[Range, ...]
    steps: int = 1
    failures: int = 0

    def to_request(self) -> Compare:
        return Compare(nonce=self.nonce, ranges=tuple(RangeMessage.of(one) for one in self.asked))


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

    def take(self, address: str, answer: Ranges) -> Difference | None:
        """Read an answer; None where nothing was asked.

        Raises:
            MalformedError: No answer to what was asked.
        """
        session = self._sessions.get(address)
        if session is None:
            return None
        answered = [one.to_range() for one in answer.ranges]
        found = compare_ranges(self._store.ids, session.nonce, session.asked, answered)
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
