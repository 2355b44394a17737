"""Writers of one dataset at once: each merges with the head that it sees, and commits where that is still the head.

1. A write reads the head, merges and commits without waiting for any other.
2. Where another writer was faster, or some already wait, it waits for its place in the dataset's queue, and merges
   again with the head of that moment. What it writes is decided anew each time: a chain is as if its writers came one
   by one.
3. In its place it is overtaken only by writers that had begun before it, each of them once; between attempts it rests
   for a random time. What waits too long fails, and has written nothing.

The queue only saves work: what keeps two writers apart is the head that a commit expects (HOME-11). A writer that is
killed leaves the queue with its process.

Source: clauses FEED-2 in ``spec/pushed-rows.md`` and TABLE-8 in ``spec/plug-ins/tables.md``.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odf_node.datasets.chains import load_view
from odf_node.home import Home
from odf_node.ingest.batch import Batch, Root
from odf_node.ingest.keyed import find_repeated
from odf_node.ingest.report import IngestReport
from odf_node.ingest.taking import BatchTaker
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import DatasetNotFoundError, HeadMovedError, WritersBusyError
from odf_node.records.ingests import IngestKey, KeyInUseError
from odf_node.store.write_queue import WriteQueue
from odf_protocol.dataset_view import DatasetView

MAX_WAIT_S: Final = 60.0  # guess: some hundred writes of an ordinary size
MAX_REST_S: Final = 0.05  # guess: half of a small write

Prepare = Callable[[DatasetRecord, DatasetView], tuple[Root, Batch]]
"""Decides what is written, by the dataset as it is at one head."""


@dataclass(frozen=True, slots=True)
class ConcurrentWrites:
    """Takes batches in where the chain ends; the caller holds a writing lease."""

    home: Home
    taker: BatchTaker
    max_wait_s: float = MAX_WAIT_S

    def take(self, record: DatasetRecord, prepare: Prepare, *, key: IngestKey | None = None) -> IngestReport:
        """Take a batch in.

        Args:
            record: Where it goes.
            prepare: Called with each attempt.
            key: The same again under it does nothing.

        Raises:
            WritersBusyError: Others wrote all the time; nothing was written.
            DatasetNotFoundError: The dataset was deleted meanwhile.
            KeyReusedError: Something else was asked under the key.
            OdfError: As ``prepare`` and ``BatchTaker.take``.
        """
        queue = WriteQueue(self.home.folder, record.id)
        if not queue.is_held():
            try:
                return self._attempt(record, prepare, key)
            except (HeadMovedError, KeyInUseError):
                pass  # wait in the queue
        give_up_at = time.monotonic() + self.max_wait_s
        with queue.entered(give_up_at) as is_first:
            while is_first:
                try:
                    return self._attempt(record, prepare, key)
                except (HeadMovedError, KeyInUseError):
                    if time.monotonic() > give_up_at:
                        break
                time.sleep(random.uniform(0, MAX_REST_S))  # noqa: S311 - no secret
        raise WritersBusyError(record.name, self.max_wait_s)

    def _attempt(self, record: DatasetRecord, prepare: Prepare, key: IngestKey | None) -> IngestReport:
        current = self.home.store.find_dataset(record.id)
        if current is None:
            raise DatasetNotFoundError(record.id)
        if key is not None and (repeated := find_repeated(self.home.store, current, key)) is not None:
            return repeated
        return self.taker.take(*prepare(current, load_view(self.home.store, record.id)))
