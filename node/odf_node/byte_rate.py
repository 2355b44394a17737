"""How fast bytes may move: one rate that everything in a process shares, which may be changed while they do."""

import asyncio
from typing import Final

from odf_node.exchange.limits import KIB, LEAST_SET_RATE_BYTES_PER_S
from odf_node.exchange.rate_limits import TokenBuckets

_WINDOW_S: Final = 0.5
_ALL: Final = "all"
_PIECES_PER_S: Final = 8  # guess: smooth enough for progress and for peers that wait for the next bytes
_UNLIMITED_PIECE_BYTES: Final = 256 * KIB


class ByteRate:
    """Whoever moves bytes waits before, and says afterwards how many they were."""

    def __init__(self, bytes_per_s: int = 0) -> None:
        """Make it; 0: no limit."""
        self._buckets = TokenBuckets(0, _WINDOW_S)
        self.set(bytes_per_s)

    def set(self, bytes_per_s: int) -> None:
        """Change it for everything that begins from now on."""
        bytes_per_s = max(bytes_per_s, LEAST_SET_RATE_BYTES_PER_S) if bytes_per_s else 0
        if self._buckets.rate_per_s != bytes_per_s:
            self._buckets = TokenBuckets(bytes_per_s, _WINDOW_S)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return bool(self._buckets.rate_per_s)

    @property
    def piece_bytes(self) -> int:
        """How much to move at once, so that nothing stands still for long."""
        return int(self._buckets.rate_per_s) // _PIECES_PER_S if self.is_limited else _UNLIMITED_PIECE_BYTES

    async def wait(self) -> None:
        """Wait until something may be moved."""
        loop = asyncio.get_running_loop()
        while wait_s := self._buckets.find_wait_s(_ALL, now_s=loop.time()):  # noqa: ASYNC110 - it is time that fills it
            await asyncio.sleep(wait_s)

    def take(self, size_bytes: int) -> None:
        """Say that so many bytes were moved, or are now; the next ones wait for them."""
        self._buckets.take(_ALL, size_bytes, now_s=asyncio.get_running_loop().time())
