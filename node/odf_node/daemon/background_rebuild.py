"""The daemon's rebuilding: a thread that brings back dropped files of our own derivatives, one dataset at a time."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from odf_node.composition import Node
from odf_node.daemon.stoppable_work import StoppableWork
from odf_node.http.access_log import write_line
from odf_node.ports.progress import Silence
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.did import DatasetId
from odf_protocol.enums import DatasetKind
from odf_protocol.errors import OdfError

FORGET_FAILURE_S: Final = 3600.0  # guess: strangers who ask again must not cost an engine's work each time
MAX_WAITING: Final = 100  # guess


class BackgroundRebuild:
    """``RebuildRequests``: what is asked for waits in a line, and is worked on by one thread until ``end``.

    Args:
        open_node: Opens a node on the same home; the thread has one of its own, with its own engines.
    """

    def __init__(self, open_node: Callable[[], Node]) -> None:
        self._open_node = open_node
        self._changed = threading.Condition()
        self._waiting: dict[DatasetId, DatasetRecord] = {}
        self._failed_s: dict[DatasetId, float] = {}
        self._ends = False
        self._work = StoppableWork(open_node)
        self._thread = threading.Thread(target=self._run, name="rebuild", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop at once: an engine that is at work is ended, and what it made so far is dropped."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
            self._work.stop()
        self._thread.join()

    def request(self, record: DatasetRecord) -> bool:
        """See ``RebuildRequests``."""
        if record.kind is not DatasetKind.DERIVATIVE or record.origin is not Origin.OWN:
            return False
        with self._changed:
            failed_s = self._failed_s.get(record.id)
            is_full = len(self._waiting) >= MAX_WAITING and record.id not in self._waiting
            if is_full or (failed_s is not None and time.monotonic() - failed_s < FORGET_FAILURE_S):
                return False
            self._waiting[record.id] = record
            self._changed.notify()
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ends:
                    self._changed.wait()
                if self._ends:
                    return
                record = next(iter(self._waiting.values()))
                self._work = StoppableWork(self._open_node)
            try:
                self._work.run(partial(_bring, record))
            except asyncio.CancelledError:
                return
            except (OdfError, OSError) as error:
                with self._changed:
                    self._failed_s[record.id] = time.monotonic()
                write_line("rebuild-failed", level=logging.ERROR, dataset=record.name, text=str(error))
            finally:
                with self._changed:
                    # Only now: who asked meanwhile was told to come again.
                    self._waiting.pop(record.id, None)
                    self._changed.notify_all()


async def _bring(record: DatasetRecord, node: Node) -> None:
    report = await node.bringing.bring(record, None, Silence())
    write_line("rebuilt", dataset=record.name, files=report.rebuilt_files, size_bytes=report.size_bytes)
