"""The daemon gives bad rows to the sinks that manifests declare: a thread that looks at quarantine (SINK-3).

It looks at what is committed, whoever committed it, so nothing waits for it.
"""

import logging
import threading
import time
from typing import Final

from odf_node.composition import Node
from odf_node.daemon.background_notices import LOOK_EACH_S, REST
from odf_node.http.access_log import write_line
from odf_node.http.live import Live
from odf_node.ports import DatasetRecord
from odf_node.ports.notices import Told
from odf_protocol.did import DatasetId
from odf_protocol.head import Head

__all__ = ["BackgroundSinks"]

_END_S: Final = 15.0  # guess: a receiver answers within ten; what hangs longer ends with the process


class BackgroundSinks:
    """Delivers from ``start`` to ``end``."""

    def __init__(self, node: Node, live: Live, *, look_each_s: float = LOOK_EACH_S) -> None:
        self._node, self._live, self._look_each_s = node, live, look_each_s
        self._stop = threading.Event()
        self._seen: dict[DatasetId, tuple[Head, int]] = {}
        self._thread = threading.Thread(target=self._run, name="sinks", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop; what was not delivered is by the next process."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_END_S)

    def _run(self) -> None:
        while True:
            began_s = time.thread_time()
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - the edge of a thread that goes on for months
                write_line("sinks-wait", level=logging.ERROR, error=type(error).__name__, text=str(error))
            if self._stop.wait(self._look_each_s + REST * (time.thread_time() - began_s)):
                return

    def _look(self) -> None:
        if not self._node.home.exists():
            return
        with_rows = self._node.ingests.list_datasets_with_quarantine()
        for record in self._node.chains.list_datasets() if with_rows else ():
            if record.id in with_rows and not self._stop.is_set():
                self._look_at(record)

    def _look_at(self, record: DatasetRecord) -> None:
        sinks, newest = self._node.sinks, 0
        for entry in self._node.ingests.iter_quarantine(record.id):
            newest = entry.id
        if self._seen.get(record.id) == (record.head, newest) and not sinks.waits(record):
            return
        for each in sinks.deliver(record, time.monotonic()):
            self._live.metrics.sinks.add(result=each.told)
            level = logging.INFO if each.told is Told.DONE else logging.WARNING
            write_line(
                "sink",
                level=level,
                dataset=record.name,
                to=each.sink,
                entry=each.entry,
                result=each.told,
                text=each.why,
            )
            if self._stop.is_set():
                return
        self._seen[record.id] = record.head, newest
