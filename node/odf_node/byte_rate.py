"""How fast bytes may move: one rate that everything in a process shares, which may be changed while they do."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO, Final, cast
from weakref import WeakKeyDictionary

from odf_node.token_buckets import TokenBuckets
from odf_protocol.exchange.limits import KIB, MIN_SET_RATE_BYTES_PER_S

_WINDOW_S: Final = 0.5
_ALL: Final = "all"
MAX_DEBT_S: Final = 1.0
"""What moved in one piece may make everybody wait for so long; whoever moved more pays for the rest alone.
Guess: several ordinary pieces, and a stall that no other side takes for an end."""
_CHUNKS_PER_S: Final = 8  # guess: smooth enough for progress and for peers that wait for the next bytes
_UNLIMITED_CHUNK_BYTES: Final = 256 * KIB


class ByteRate:
    """Whoever moves bytes waits before, and says afterwards how many they were.

    May be used by the tasks of a loop and by threads at the same time. All share one bucket. Something large that moved
    in one piece would keep everybody waiting, for hours at a low rate: so the task or thread that moved it owes what is
    beyond ``MAX_DEBT_S``, and pays bit by bit before it moves anything else, while the others go on.
    """

    def __init__(
        self,
        bytes_per_s: int = 0,
        *,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        hold: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        """Make it; 0: no limit. ``now_s`` is its clock, by which tasks ``sleep`` and threads ``hold``."""
        self._buckets = TokenBuckets(0, _WINDOW_S)
        self._lock = threading.Lock()
        self._owed: WeakKeyDictionary[object, float] = WeakKeyDictionary()
        self._now_s = now_s
        self._sleep = sleep
        self._hold = hold
        self.set(bytes_per_s)

    def set(self, bytes_per_s: int) -> None:
        """Change it for everything that begins from now on."""
        bytes_per_s = max(bytes_per_s, MIN_SET_RATE_BYTES_PER_S) if bytes_per_s else 0
        if self._buckets.rate_per_s != bytes_per_s:
            with self._lock:
                self._buckets = TokenBuckets(bytes_per_s, _WINDOW_S)
                self._owed.clear()

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return bool(self._buckets.rate_per_s)

    @property
    def chunk_bytes(self) -> int:
        """How much to move at once, so that nothing stands still for long."""
        return int(self._buckets.rate_per_s) // _CHUNKS_PER_S if self.is_limited else _UNLIMITED_CHUNK_BYTES

    def find_wait_s(self) -> float:
        """Return how long nothing may be moved by anybody; 0: something may be now, by whoever owes nothing."""
        with self._lock:
            return self._buckets.find_wait_s(_ALL, now_s=self._now_s())

    async def wait(self) -> None:
        """Wait until the caller may move something."""
        while wait_s := self._find_own_wait_s():
            await self._sleep(wait_s)

    def hold(self, stopped: threading.Event) -> None:
        """Wait in a thread until it may move something, or until it is stopped."""
        while not stopped.is_set() and (wait_s := self._find_own_wait_s()):
            self._hold(stopped, wait_s)

    def take(self, size_bytes: int) -> None:
        """Say that the caller moved so many bytes, or does now; what is moved next waits for them."""
        with self._lock:
            max_debt = self._buckets.rate_per_s * MAX_DEBT_S
            left = self._buckets.take_some(_ALL, size_bytes, max_debt=max_debt, now_s=self._now_s())
            if left:
                self._owe(left)

    async def spend(self, size_bytes: int, *, max_s: float) -> None:
        """Wait as ``pay`` does, for what the caller owes too; what is left then it owes."""
        with self._lock:
            owed = self._owed.pop(_find_mover(), 0.0)
        left = await self.pay(size_bytes + int(owed), max_s=max_s)
        if left:
            with self._lock:
                self._owe(left)

    async def pay(self, size_bytes: int, *, max_s: float) -> int:
        """Wait for bytes that can only move in one piece, bit by bit: whatever shares the rate goes on meanwhile.

        After ``max_s`` others would not wait any longer.

        Returns:
            How many bytes are left, which nobody waited for.
        """
        give_up_s = self._now_s() + max_s
        while size_bytes > 0 and self.is_limited and (now_s := self._now_s()) < give_up_s:
            if wait_s := self._find_own_wait_s():
                await self._sleep(min(wait_s, give_up_s - now_s))
                continue
            chunk = min(size_bytes, self.chunk_bytes)
            self.take(chunk)
            size_bytes -= chunk
        return max(0, size_bytes) if self.is_limited else 0

    def _find_own_wait_s(self) -> float:
        """Return how long the caller may move nothing, and let it pay what it owes as far as that can be now."""
        with self._lock:
            while True:
                now_s = self._now_s()
                if wait_s := self._buckets.find_wait_s(_ALL, now_s=now_s):
                    return wait_s
                mover = _find_mover()
                owed = self._owed.pop(mover, 0.0)
                if not owed:
                    return 0.0
                chunk = min(owed, self.chunk_bytes)
                self._buckets.take(_ALL, chunk, now_s=now_s)
                if owed > chunk:
                    self._owed[mover] = owed - chunk

    def _owe(self, size_bytes: float) -> None:
        mover = _find_mover()
        self._owed[mover] = self._owed.get(mover, 0.0) + size_bytes


def _find_mover() -> object:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        task = None
    return task or threading.current_thread()


class StoppedError(Exception):
    """The task that waited for a thread was cancelled; nobody hears this."""


class Pacing:
    """A rate for work in a thread, until the task that waits for that work is cancelled."""

    def __init__(self, rate: ByteRate) -> None:
        self._rate = rate
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let the thread end at its next read."""
        self._stopped.set()

    def pace(self, file: BinaryIO) -> BinaryIO:
        """Give the file to be read no faster than the rate allows; reading raises ``StoppedError`` after ``stop``."""
        return cast("BinaryIO", _PacedFile(file, self))

    def read(self, file: BinaryIO, size_bytes: int) -> bytes:
        """Read up to so many bytes; fewer only at the end of the file."""
        chunks: list[bytes] = []
        while size_bytes > 0:
            self._rate.hold(self._stopped)
            if self._stopped.is_set():
                raise StoppedError
            chunk = file.read(min(size_bytes, self._rate.chunk_bytes) if self._rate.is_limited else size_bytes)
            if not chunk:
                break
            self._rate.take(len(chunk))
            size_bytes -= len(chunk)
            chunks.append(chunk)
        return b"".join(chunks) if len(chunks) != 1 else chunks[0]


class _PacedFile:
    def __init__(self, file: BinaryIO, pacing: Pacing) -> None:
        self._file = file
        self._pacing = pacing

    def read(self, size_bytes: int) -> bytes:
        return self._pacing.read(self._file, size_bytes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
