"""Rows of a file, decoded in a thread of their own while those before are looked at."""

from collections import deque
from collections.abc import Callable, Iterator
from threading import Condition, Thread
from typing import Final

import pyarrow as pa

AHEAD_BYTES: Final = 1 << 23  # guess: as much as is hashed at once, so that the two alternate


def iter_ahead(batches: Iterator[pa.RecordBatch], ahead_bytes: int = AHEAD_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield the batches, of which the next ones are made while the caller works, as long as they are small.

    At most ``ahead_bytes`` wait, judged by the size of the one before: large ones are made when they are asked for, and
    no more memory is needed for them than without a thread.

    Raises:
        BaseException: What ``batches`` raises, after those before it.
    """
    ahead = _Ahead(batches, ahead_bytes)
    thread = Thread(target=ahead.make, name="batches-ahead", daemon=True)
    thread.start()
    try:
        yield from iter(ahead.take, None)
    finally:
        ahead.stop()
        thread.join()


class _Ahead:
    def __init__(self, batches: Iterator[pa.RecordBatch], ahead_bytes: int) -> None:
        self._batches = batches
        self._ahead_bytes = ahead_bytes
        self._changed = Condition()
        self._made: deque[pa.RecordBatch] = deque()
        self._made_bytes = 0
        self._last_bytes = 0
        self._is_waited_for = False
        self._is_stopped = False
        self._is_over = False
        self._error: BaseException | None = None

    def make(self) -> None:
        """Make batches until there are no more, or nobody wants them."""
        try:
            while self._wait_until(self._may_make):
                batch = next(self._batches, None)
                if batch is None:
                    break
                size_bytes = batch.nbytes
                with self._changed:
                    self._made.append(batch)
                    self._made_bytes += size_bytes
                    self._last_bytes = size_bytes
                    self._changed.notify_all()
                del batch  # it may be all that fits into memory
        except BaseException as error:  # noqa: BLE001 - raised where the batches are taken
            self._error = error
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def take(self) -> pa.RecordBatch | None:
        """Give the next batch; None after the last one."""
        with self._changed:
            self._is_waited_for = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._made or self._is_over)
            self._is_waited_for = False
            if self._made:
                batch = self._made.popleft()
                self._made_bytes -= batch.nbytes
                self._changed.notify_all()
                return batch
        if self._error is not None:
            raise self._error
        return None

    def stop(self) -> None:
        """Make no more."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _may_make(self) -> bool:
        if not self._made and self._is_waited_for:
            return True
        return self._last_bytes > 0 and self._made_bytes + self._last_bytes <= self._ahead_bytes

    def _wait_until(self, condition: Callable[[], bool]) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or condition())
            return not self._is_stopped
