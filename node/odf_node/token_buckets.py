"""Token buckets: how fast somebody may take something. Pure: the time is passed in.

A bucket holds at most what flows in during its window. Taking is allowed while one is left in it, and may draw it below
zero, so that something larger than a bucket passes too, and is paid for by waiting.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

MAX_BUCKETS: Final = 10_000  # guess: a few MB; whoever is forgotten starts with a full bucket


@dataclass(slots=True)
class _Bucket:
    level: float
    filled_at_s: float


class TokenBuckets:
    """One bucket for each key; the ones that were not used for longest are forgotten."""

    def __init__(self, rate_per_s: float, window_s: float) -> None:
        """Make them empty of keys.

        Args:
            rate_per_s: What flows in, in whatever is counted; 0: no limit.
            window_s: How much of it a bucket holds, in seconds.
        """
        self.rate_per_s = rate_per_s
        self._window_s = window_s
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def find_wait_s(self, key: str, *, now_s: float) -> float:
        """Return how long the key must wait before it may take anything; 0: it may now."""
        if not self.rate_per_s:
            return 0.0
        level = self._fill(key, now_s).level
        return 0.0 if level >= 1 else (1 - level) / self.rate_per_s

    def take(self, key: str, amount: float, *, now_s: float) -> None:
        """Take, whether the bucket holds it or not."""
        if self.rate_per_s:
            self._fill(key, now_s).level -= amount

    def take_some(self, key: str, amount: float, *, max_debt: float, now_s: float) -> float:
        """Take, but draw the bucket no further below zero than ``max_debt``.

        Returns:
            How much of the amount is left then.
        """
        if not self.rate_per_s:
            return 0.0
        bucket = self._fill(key, now_s)
        taken = min(amount, max(0.0, bucket.level + max_debt))
        bucket.level -= taken
        return amount - taken

    def _fill(self, key: str, now_s: float) -> _Bucket:
        full = self.rate_per_s * self._window_s
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(full, now_s)
            if len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        # A clock that jumps back fills nothing; one that jumps forward fills no more than the bucket.
        passed_s = max(0.0, now_s - bucket.filled_at_s)
        bucket.level = min(full, bucket.level + passed_s * self.rate_per_s)
        bucket.filled_at_s = now_s
        return bucket
