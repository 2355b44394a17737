"""Rows of a file, decoded in a thread of their own while those before are looked at."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa

AHEAD_BYTES: Final = 1 << 23  # guess: as much as is hashed at once, so that the two alternate


def iter_ahead(batches: Iterator[pa.RecordBatch], ahead_bytes: int = AHEAD_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield the batches; the next one is made while the caller works, unless this one has more bytes than that.

    Behind a large one the next is made when it is asked for, and takes no more memory than without a thread.

    Raises:
        BaseException: What ``batches`` raises, after those before it.
    """
    with ThreadPoolExecutor(1, "batches-ahead") as thread:
        batch = next(batches, None)
        while batch is not None:
            ahead = thread.submit(next, batches, None) if batch.nbytes <= ahead_bytes else None
            yield batch
            del batch  # it may be all that fits into memory
            batch = next(batches, None) if ahead is None else ahead.result()
