"""The daemon computes the fingerprint of every version that it holds, a moment after it came.

Source: clause FP-11 in ``spec/plug-ins/fingerprints.md``.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from odf_fingerprints.kept import KeptFingerprints
from odf_fingerprints.making import FingerprintMaker
from odf_node.composition import Node
from odf_node.daemon.background_work import BackgroundService, RunningDaemon, Start
from odf_node.daemon.repeated_look import LOOK_EACH_S, RepeatedLook
from odf_node.errors import ObjectsAbsentError
from odf_node.records.datasets import DatasetRecord
from odf_protocol.did import DatasetId
from odf_protocol.errors import CorruptError, MalformedError, RejectedError, UnavailableError, UnsupportedError
from odf_protocol.head import Head

VERSIONS_AT_ONCE: Final = 20  # guess: seconds, after which another dataset has its turn
MAX_ATTEMPTS: Final = 3  # guess: of what may succeed later; a slice that always ends its reader is left then
_END_S: Final = 15.0  # as of other work of the daemon


class FingerprintLook(RepeatedLook):
    """Looks which datasets have grown."""

    def __init__(self, node: Node) -> None:
        super().__init__("fingerprints", LOOK_EACH_S, node.store.read_change)
        self._node = node
        self._done: dict[DatasetId, Head] = {}
        self._attempts: Counter[DatasetId] = Counter()

    def look(self) -> bool:
        """Compute some versions of each dataset that has grown; what cannot be computed waits for its next block."""
        home, is_waiting = self._node.home, False
        kept = KeptFingerprints(home.folder)
        known = kept.list_datasets()  # before those that there are: one may come meanwhile
        records = home.store.list_datasets()
        for gone in known - {str(record.id) for record in records}:
            kept.forget(DatasetId.parse(gone))
        self._done = {record.id: self._done[record.id] for record in records if record.id in self._done}
        with FingerprintMaker(home) as maker:
            for record in records:
                if self._stop.is_set():
                    return True
                if self._done.get(record.id) == record.head:
                    continue
                if self._make(maker, record):
                    self._done[record.id] = record.head
                else:
                    is_waiting = True
        return is_waiting

    def _make(self, maker: FingerprintMaker, record: DatasetRecord) -> bool:
        """Compute some versions of a dataset, and say whether it is done up to its next block."""
        try:
            is_done = maker.make(record, limit=VERSIONS_AT_ONCE) < VERSIONS_AT_ONCE
        except (ObjectsAbsentError, CorruptError, RejectedError, MalformedError, UnsupportedError):
            is_done = True  # who asks for it is given the reason
        except UnavailableError:
            self._attempts[record.id] += 1
            is_done = self._attempts[record.id] >= MAX_ATTEMPTS
        if is_done:
            del self._attempts[record.id]
        return is_done


@asynccontextmanager
async def _serve(daemon: RunningDaemon) -> AsyncIterator[Start]:
    look = FingerprintLook(daemon.node)
    try:
        yield lambda _listening, _app: look.start()
    finally:
        await asyncio.to_thread(look.end, _END_S)


SERVICE: Final = BackgroundService(_serve)
"""Found by its entry point in the group ``odf_node.background``."""
