"""Trees over slices: computed from files that are held, kept while they are asked about.

Strangers choose the files, and no reader with limits need have read them before: checkpoints, slices that were taken by
their hashes alone. So they are read as slices of strangers are, in a process of its own (ROWS-6), one at a time, at
low priority; and what came of it is kept, be it that there is no tree.

Source: clauses EX-30 and EX-32 in ``spec/extensions/exchange.md``.
"""

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_node.ports.objects import StoredObjects
from odf_node.rows.slice_process import ReadingLimits, SliceProcess
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnsupportedError
from odf_protocol.exchange.limits import (
    KEPT_TREES_BYTES,
    MAX_TREE_LEAVES,
    MAX_TREE_SCHEMA_BYTES,
    MAX_WAITING_TREES,
)
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    from odf_protocol.hashing.v1 import TableSummary

TREE_LIMITS: Final = ReadingLimits(memory_bytes=1024**3, cpu_s=60, cpu_s_per_megabyte=1)
"""Guess: ordinary slices take tenths of a second for a megabyte, and a hundred megabytes of memory."""
_ENTRY_BYTES: Final = 2048  # guess: what an entry takes beside its hashes


class KeptTrees:
    """``SliceTrees`` over an object store; for the tasks of one loop."""

    def __init__(self, objects: StoredObjects, limits: ReadingLimits = TREE_LIMITS) -> None:
        self._objects = objects
        self._limits = limits
        self._semaphore = FairSemaphore(lambda: TurnLimits(1, MAX_WAITING_TREES))
        self._kept: OrderedDict[Multihash, TableSummary | OdfError] = OrderedDict()
        self._kept_bytes = 0

    async def get_summary(self, object_hash: Multihash, caller: str) -> "TableSummary":
        """See ``SliceTrees``."""
        found = self._find(object_hash)
        if found is None:
            async with self._semaphore.ask(caller):
                found = self._find(object_hash)  # whoever had the turn before may have asked the same
                if found is None:
                    found = await self._read(object_hash)
                    self._keep(object_hash, found)
        if isinstance(found, OdfError):
            raise found.with_traceback(None)
        return found

    async def _read(self, object_hash: Multihash) -> "TableSummary | OdfError":
        reader = SliceProcess(self._limits)

        def read(path: Path) -> "TableSummary | OdfError":
            with reader:
                try:
                    return reader.summarise(path, max_leaves=MAX_TREE_LEAVES, max_schema_bytes=MAX_TREE_SCHEMA_BYTES)
                except (RejectedError, MalformedError, UnsupportedError) as error:
                    return error

        return await finish_in_thread(lambda: read(self._objects.get_path(object_hash)), stop=reader.stop)

    def _find(self, object_hash: Multihash) -> "TableSummary | OdfError | None":
        found = self._kept.get(object_hash)
        if found is not None:
            self._kept.move_to_end(object_hash)
        return found

    def _keep(self, object_hash: Multihash, found: "TableSummary | OdfError") -> None:
        self._kept[object_hash] = found
        self._kept_bytes += _size_bytes(found)
        while self._kept_bytes > KEPT_TREES_BYTES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= _size_bytes(dropped)


def _size_bytes(found: "TableSummary | OdfError") -> int:
    if isinstance(found, OdfError):
        return _ENTRY_BYTES
    # A column of one leaf still takes an object and a tuple.
    trees = (*found.levels, found.column_levels)
    hashes_bytes = sum(len(level.raw) for tree in trees for level in tree)
    return _ENTRY_BYTES + len(found.schema) + hashes_bytes + 200 * len(trees)
