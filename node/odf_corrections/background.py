"""The daemon gives bad rows to the sinks that manifests declare: a thread that looks at quarantine (SINK-3).

It looks at what is committed, whichever process committed it, so nothing waits for it.

``SERVICE`` is found by its entry point in the group ``odf_node.background``.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from odf_corrections.sinking import open_sinks
from odf_node.composition import Node
from odf_node.daemon.background_work import BackgroundService, RunningDaemon, Start
from odf_node.daemon.repeated_look import LOOK_EACH_S, RepeatedLook
from odf_node.http.access_log import write_line
from odf_node.http.served_node import Live
from odf_node.ports.notices import Told
from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.head import Head

_END_S: Final = 15.0  # guess: a receiver answers within ten; what hangs longer ends with the process


class BackgroundSinks(RepeatedLook):
    """Delivers from ``start`` to ``end``."""

    def __init__(self, node: Node, live: Live, *, look_each_s: float = LOOK_EACH_S) -> None:
        super().__init__("sinks", look_each_s, node.store.read_change)
        self._node, self._sinks = node, open_sinks(node)
        self._results = live.metrics.add_counter(
            "sinks_total", "Entries of quarantine given to sinks, by result.", "result"
        )
        self._seen: dict[DatasetId, tuple[Head, int]] = {}

    def end(self, wait_s: float | None = _END_S) -> None:
        """Stop; what was not delivered is by the next process."""
        super().end(wait_s)

    def look(self) -> bool:
        """Deliver what is in quarantine and was not."""
        if not self._node.home.folder.exists():
            return False
        with_rows = self._node.store.list_datasets_with_quarantine()
        records = [each for each in (self._node.store.list_datasets() if with_rows else ()) if each.id in with_rows]
        for record in records:
            if not self._stop.is_set():
                self._look_at(record)
        return any(self._sinks.waits(record) for record in records)

    def _look_at(self, record: DatasetRecord) -> None:
        sinks, newest = self._sinks, 0
        for entry in self._node.store.iter_quarantine(record.id):
            newest = entry.id
        if self._seen.get(record.id) == (record.head, newest) and not sinks.waits(record):
            return
        for each in sinks.deliver(record, time.monotonic()):
            self._results.labels(result=each.reported).inc()
            level = logging.INFO if each.reported is Told.DONE else logging.WARNING
            write_line(
                "sink",
                level=level,
                dataset=record.name,
                to=each.sink,
                entry=each.entry,
                result=each.reported,
                text=each.why,
            )
            if self._stop.is_set():
                return
        self._seen[record.id] = record.head, newest


@asynccontextmanager
async def _serve(daemon: RunningDaemon) -> AsyncIterator[Start]:
    sinks = BackgroundSinks(daemon.node, daemon.live)
    try:
        yield lambda _listening, _app: sinks.start()
    finally:
        await asyncio.to_thread(sinks.end)


SERVICE: Final = BackgroundService(_serve)
