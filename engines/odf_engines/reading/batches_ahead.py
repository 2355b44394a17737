"""Rows of a file, decoded in a thread of their own while those before are looked at."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Condition
from typing import Final

import pyarrow as pa

AHEAD_BYTES: Final = 1 << 23  # guess: as much as is hashed at once, so that neither waits for the other


def iter_ahead(batches: Iterator[pa.RecordBatch], ahead_bytes: int = AHEAD_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield the batches; the next ones are made while the caller works, until there are more bytes than that.

    The batch that the caller has counts. So behind a large one the next is made when it is asked for, and takes no
    more memory than without a thread.

    Raises:
        BaseException: What ``batches`` raises, after those before it.
    """
    made: SimpleQueue[pa.RecordBatch | None] = SimpleQueue()
    room = _Room(ahead_bytes)
    with ThreadPoolExecutor(1, "batches-ahead") as thread:
        making = thread.submit(_make, batches, made, room)
        try:
            while (batch := made.get()) is not None:
                size_bytes = batch.nbytes
                yield batch
                del batch  # it may be all that fits into memory
                room.free(size_bytes)
            making.result()
        finally:
            room.close()


def _make(batches: Iterator[pa.RecordBatch], made: "SimpleQueue[pa.RecordBatch | None]", room: "_Room") -> None:
    try:
        is_wanted = True
        while is_wanted and (batch := next(batches, None)) is not None:
            size_bytes = batch.nbytes
            made.put(batch)
            del batch
            is_wanted = room.fill(size_bytes)
    finally:
        made.put(None)


class _Room:
    """Bytes that are held, of which a thread makes no more while there are more than ``allowed_bytes``."""

    def __init__(self, allowed_bytes: int) -> None:
        self._allowed_bytes = allowed_bytes
        self._held_bytes = 0
        self._is_closed = False
        self._change = Condition()

    def fill(self, size_bytes: int) -> bool:
        """Add bytes and wait until more may be made; False where no more are wanted."""
        with self._change:
            self._held_bytes += size_bytes
            self._change.wait_for(lambda: self._held_bytes <= self._allowed_bytes or self._is_closed)
            return not self._is_closed

    def free(self, size_bytes: int) -> None:
        """Take bytes out that nobody holds any more."""
        with self._change:
            self._held_bytes -= size_bytes
            self._change.notify()

    def close(self) -> None:
        """Want no more."""
        with self._change:
            self._is_closed = True
            self._change.notify()
