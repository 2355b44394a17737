"""What a gossiping node spends: every number of the state machines in one value, so that tests can shrink the world.

Beside it stand the token buckets that keep senders to these numbers, with bounded memory.

Source: clauses GOSSIP-26 to GOSSIP-28 in ``spec/plug-ins/gossip.md``; GOSSIP-30 lists what others rely on.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipSettings:
    """Limits and intervals, the latter counted in rounds where nothing else is said.

    All defaults are guesses that the simulator was content with.
    """

    round_ms: int = 2_000  # milliseconds from one ``Tick`` to the next; the host keeps this clock
    out_links: int = 5  # peers that this node chose to send to
    in_links: int = 8  # peers that asked this node to send to them, on top
    anchor_links: int = 1  # how many of ``out_links`` are given to pinned peers first
    hello_rounds: int = 5  # between two greetings of chosen peers
    link_rounds: int = 90  # a link that somebody asked for ends when they did not ask again for so long
    probe_rounds: int = 10  # between two looks at a peer that is not a link
    rotate_rounds: int = 150  # between two replacements of a chosen peer by another
    reconcile_rounds: int = 4  # between two reconciliations
    anchor_reconciles: int = 4  # every so many reconciliations one goes to a pinned peer
    feed_peers: int = 2  # how many peers a node without an address follows each round
    max_failures: int = 3  # in a row, before a link is dropped
    max_backoff_rounds: int = 60  # longest wait before a peer that fails is tried again
    tried_peers: int = 128  # peers that answered once and are no links
    new_peers: int = 256  # peers that were only heard of
    bucket_peers: int = 4  # of one address bucket in either table
    bucket_links: int = 1  # of one address bucket among the chosen peers
    introduced_peers: int = 32  # peers only heard of from one address bucket
    fresh_failures: int = 4  # in a row, before a peer that was only heard of is forgotten
    sample_peers: int = 6  # records in one answer
    max_items: int = 20_000  # items of no particular interest kept at once
    max_item_bytes: int = 32 * 1024 * 1024  # their bytes
    signer_items: int = 2_048  # items of interest by one key; more are kept in passing
    max_forgotten: int = 40_000  # ids remembered so as not to be asked for again
    max_log: int = 4_096  # entries of the arrival log that feeds are read from
    future_ms: int = 600_000  # how far ahead of this node's clock a statement may be dated
    outbox_items: int = 512  # items that wait for one peer
    push_bytes: int = 64 * 1024  # raw bytes in one push
    push_items: int = 16  # items in one push; fewer than ``rate_items_per_s`` allows in a round
    push_attempts: int = 3  # how often an item is sent to a peer that does not answer
    want_items: int = 256  # ids in one want
    session_steps: int = 8  # requests of one reconciliation
    rate_requests_per_s: float = 20.0  # of one address bucket, in the long run
    rate_burst_requests: float = 200.0  # and at once
    rate_items_per_s: float = 10.0  # new items that one bucket may push unasked, in the long run
    rate_burst_items: float = 300.0  # and at once
    origin_heads_per_s: float = 0.2  # new heads of one dataset, in the long run
    origin_burst_heads: float = 8.0  # and at once
    rate_buckets: int = 4_096  # buckets that are counted at once
    max_strikes: int = 8  # invalid items from one bucket before it is shut out
    ban_ms: int = 600_000  # for how long


K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Level:
    tokens: float
    at_ms: int


class Rates(Generic[K]):
    """A token bucket for each key. The keys seen longest ago are forgotten, and then start full again."""

    def __init__(self, *, per_s: float, burst: float, keys: int) -> None:
        self._per_ms = per_s / 1000
        self._burst = burst
        self._keys = keys
        self._levels: OrderedDict[K, _Level] = OrderedDict()

    def take(self, key: K, now_ms: int, cost: float = 1.0) -> bool:
        """Spend ``cost`` tokens of a key if it has them; say whether it had."""
        level = self._levels.pop(key, None)
        if level is None:
            level = _Level(self._burst, now_ms)
            if len(self._levels) >= self._keys:
                self._levels.popitem(last=False)
        # A clock that is set back gives nothing and takes nothing.
        elapsed_ms = max(0, now_ms - level.at_ms)
        level.tokens = min(self._burst, level.tokens + elapsed_ms * self._per_ms)
        level.at_ms = now_ms
        self._levels[key] = level
        if level.tokens < cost:
            return False
        level.tokens -= cost
        return True

    def __len__(self) -> int:
        return len(self._levels)


class Strikes(Generic[K]):
    """Counts what no honest node sends; who has too many is shut out for a time."""

    def __init__(self, *, most: int, ban_ms: int, keys: int) -> None:
        self._most = most
        self._ban_ms = ban_ms
        self._keys = keys
        self._counts: OrderedDict[K, tuple[int, int]] = OrderedDict()

    def add(self, key: K, now_ms: int) -> None:
        """Count one more."""
        count, _ = self._counts.pop(key, (0, now_ms))
        self._counts[key] = (count + 1, now_ms)
        if len(self._counts) > self._keys:
            self._counts.popitem(last=False)

    def is_banned(self, key: K, now_ms: int) -> bool:
        """Say whether a key is shut out now; afterwards it starts anew."""
        count, at_ms = self._counts.get(key, (0, now_ms))
        if now_ms < at_ms:  # the clock was set back: nobody is shut out for longer than the time from now
            self._counts[key] = (count, now_ms)
        if now_ms - at_ms >= self._ban_ms:
            self._counts.pop(key, None)
            return False
        return count >= self._most

    def __len__(self) -> int:
        return len(self._counts)
