"""The daemon tells receivers that the settings name of new blocks: a thread that looks at heads, and sends (NOTICE).

It looks at what is committed, whoever committed it, so nothing waits for it.
"""

import asyncio
import json
import logging
import time
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from odf_node.adapters.request_signing import NodeSigner, NoticeSender
from odf_node.composition import Node
from odf_node.configuration.declaration import Notice
from odf_node.daemon.repeated_look import LOOK_EACH_S, RepeatedLook
from odf_node.datasets.chains import last_offset_at
from odf_node.exchange.notices import NoticeRegistry, Waiting, read_registry, write_registry
from odf_node.http.access_log import write_line
from odf_node.http.served_node import Live
from odf_node.ports.notices import Told
from odf_protocol.did import DidKey

AT_ONCE: Final = 8
"""Receivers that are told at once.  # guess: one that hangs holds up few others, for ten seconds"""
IN_A_ROW: Final = 100
"""Notices to one receiver before heads are looked at again.  # guess"""


class BackgroundNotices(RepeatedLook):
    """Tells from ``start`` to ``end``; takes its settings from ``live`` at each look."""

    def __init__(self, node: Node, live: Live, *, look_each_s: float = LOOK_EACH_S) -> None:
        super().__init__("notices", look_each_s, lambda: (live.configuration.notice, node.store.read_change()))
        self._node, self._live = node, live
        self._registry: NoticeRegistry | None = None
        self._waiting = 0
        self._telling: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        live.metrics.add_gauge("notices_waiting", "Notices that were not taken yet.", lambda: self._waiting)

    def end(self, wait_s: float | None = None) -> None:
        """Stop; what was not told is told by the next process."""
        self._stop.set()
        if (telling := self._telling) is not None:
            loop, task = telling
            with suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(task.cancel)
        super().end(wait_s)

    def look(self) -> bool:
        """Tell what is due."""
        notices, cache = self._live.configuration.notice, self._node.home.folder.cache
        if self._registry is None:
            if not notices:
                return False
            self._registry = read_registry(cache)
        records = self._node.store.list_datasets() if notices and self._node.home.folder.exists() else ()
        is_new = [*self._registry.places] != [*notices]
        self._registry.renew(notices, records)
        due = self._registry.list_due(records, time.monotonic())
        try:
            if due:
                asyncio.run(self._report(self._registry, due))
        except asyncio.CancelledError:
            return True
        finally:
            self._telling = None
            if due or is_new:
                write_registry(cache, self._registry)
        self._waiting = self._registry.count_waiting(records)
        return self._waiting > 0

    async def _report(self, registry: NoticeRegistry, due: dict[Notice, list[Waiting]]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._telling = asyncio.get_running_loop(), task
        key, semaphore = self._node.keys.get_or_create_node_key(), asyncio.Semaphore(AT_ONCE)
        node_id = str(DidKey(key.public_key()))

        async def notify_one(notice: Notice, waiting: list[Waiting]) -> None:
            async with semaphore:
                for each in waiting[:IN_A_ROW]:
                    if self._stop.is_set():
                        return
                    reported, why = await sender.send(notice.url or "", self._message(node_id, each))
                    self._note(notice, each, registry.settle(notice, each, reported, time.monotonic()), why)
                    if reported is Told.UNAVAILABLE:
                        return

        async with NoticeSender(NodeSigner(key, self._node.clock)) as sender:
            await asyncio.gather(*(notify_one(notice, waiting) for notice, waiting in due.items()))

    def _message(self, node_id: str, waiting: Waiting) -> bytes:
        """Write what is told (NOTICE-2)."""
        record, old, chains = waiting.record, waiting.old, self._node.store
        number, before = record.head.sequence_number, -1
        rows: int | None = _row_count(last_offset_at(chains, record.id, number))
        if old is not None:
            before = old.sequence_number
            continues = before <= number and chains.find_block(record.id, old.hash) is not None
            rows = (rows or 0) - _row_count(last_offset_at(chains, record.id, before)) if continues else None
        message = {
            "kind": "new-blocks",
            "node": node_id,
            "dataset": record.name,
            "id": str(record.id),
            "oldHead": None if old is None else str(old.hash),
            "newHead": str(record.head.hash),
            "newBlocks": None if rows is None else number - before,
            "newRows": rows,
            "at": str(self._node.clock.now()),
        }
        return json.dumps(message).encode()

    def _note(self, notice: Notice, waiting: Waiting, reported: Told, why: str) -> None:
        self._live.metrics.notices.labels(result=reported).inc()
        # The rest of an address may be a secret.
        target = urlsplit(notice.url or "")
        write_line(
            "notice",
            level=logging.INFO if reported is Told.DONE else logging.WARNING,
            dataset=waiting.record.name,
            to=f"{target.scheme}://{target.hostname}{'' if target.port is None else f':{target.port}'}",
            result=reported,
            text=why,
        )


def _row_count(last_offset: int | None) -> int:
    return 0 if last_offset is None else last_offset + 1
