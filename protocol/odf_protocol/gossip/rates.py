"""Token buckets with bounded memory: what a sender may cost in the long run and at once.

Source: clauses GOSSIP-26 to GOSSIP-28 in ``spec/extensions/gossip.md``.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

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
        if now_ms - at_ms >= self._ban_ms:
            self._counts.pop(key, None)
            return False
        return count >= self._most

    def __len__(self) -> int:
        return len(self._counts)
