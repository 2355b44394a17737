"""What the routes of a node's Iceberg catalogue share: tables that were made lately, and their semaphore.

Source: clauses ICEBERG-6 and ICEBERG-17 in ``spec/plug-ins/iceberg.md``.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, Final, TypeVar

import numpy.typing as npt
from aiohttp import web

from odf_iceberg.credentials import CredentialIssuer
from odf_iceberg.removals import SliceRemovals, find_removals
from odf_iceberg.row_files import RowFiles
from odf_iceberg.tables import IcebergTables
from odf_iceberg.versions import History, read_history
from odf_node.composition import Node
from odf_node.datasets.chains import load_view
from odf_node.records.datasets import DatasetRecord
from odf_node.rows.chain_slices import ChainSlice
from odf_node.rows.changelog_check import ChangelogCheck
from odf_node.rows.slice_process import SliceProcess
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_protocol.dataset_view import DatasetView
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash

AT_ONCE: Final = 2  # guess: as many as there are small machines' cores; one may read rows of many slices
WAITING: Final = 32  # guess
MAX_KEPT_BYTES: Final = 64 * 1024 * 1024
"""Files of tables that are kept in memory.  # guess"""
MAX_KEPT_TABLES: Final = 32  # guess: as many as are read at a time; each may hold some MB

_Result = TypeVar("_Result")


@dataclass
class TableService:
    """Makes tables of datasets; used in threads; the semaphore on the event loop."""

    node: Node
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE, "iceberg"))
    semaphore: FairSemaphore = field(default_factory=lambda: FairSemaphore(lambda: TurnLimits(AT_ONCE, WAITING)))
    _tables: OrderedDict[tuple[DatasetId, Multihash], IcebergTables] = field(default_factory=OrderedDict)
    _files: OrderedDict[tuple[Multihash, str], bytes] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def issuer(self) -> CredentialIssuer:
        """Who gives credentials for files."""
        return CredentialIssuer(self.node.objects.rows.fingerprint_key())

    @cached_property
    def row_files(self) -> RowFiles:
        """The files of rows that readers are given."""
        return RowFiles(self.node)

    async def run(self, caller: str, work: Callable[[], _Result]) -> _Result:
        """Do work in a thread, when the caller has a turn."""
        async with self.semaphore.ask(caller):
            context = copy_context()  # which knows who asks
            return await asyncio.get_running_loop().run_in_executor(self.threads, context.run, work)

    def get_tables(self, record: DatasetRecord) -> IcebergTables:
        """Return the tables of a dataset at its head; in a thread.

        Raises:
            MalformedError: It has too many versions.
        """
        key = (record.id, record.head.hash)
        with self._lock:
            if key in self._tables:
                self._tables.move_to_end(key)
                return self._tables[key]
        number = record.head.sequence_number
        view = load_view(self.node.store, record.id, upto=number)
        history = read_history(self.node.store, record.id, number)
        made = IcebergTables(
            record.id,
            number,
            history,
            view.vocabulary,
            lambda: self._find_removals(view, history),
            lambda: self.row_files.find_sizes(record, history),
        )
        with self._lock:
            self._tables[key] = made
            while len(self._tables) > MAX_KEPT_TABLES:
                self._tables.popitem(last=False)
        return made

    def get_file(self, record: DatasetRecord, path: str) -> bytes | None:
        """Return a file of a dataset's tables that is made from its chain; None: there is none; in a thread."""
        key = (record.head.hash, path)
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
                return self._files[key]
        made = self.get_tables(record).make_file(path)
        if made is not None:
            with self._lock:
                self._files[key] = made
                while sum(map(len, self._files.values())) > MAX_KEPT_BYTES and len(self._files) > 1:
                    self._files.popitem(last=False)
        return made

    def _find_removals(self, view: DatasetView, history: History) -> tuple[SliceRemovals, ...]:
        assert view.schema is not None
        known = view.vocabulary
        of_change = (known.offset, known.op, known.system_time)
        columns = tuple(each.name for each in view.schema.fields if each.name not in of_change)
        objects = self.node.objects
        with SliceProcess() as reader:
            check = ChangelogCheck(reader, objects.rows, known, columns)

            def read(place: int) -> npt.NDArray[Any]:
                version = history.versions[place]
                data = version.slice
                return check.read_changes(
                    ChainSlice(
                        sequence_number=version.block_number,
                        object_hash=data.physical_hash,
                        path=objects.get_path(data.physical_hash),
                        rows=data.offset_interval.row_count,
                        first_offset=data.offset_interval.start,
                    )
                )

            return find_removals(read, len(history.versions))

    def close(self) -> None:
        """Turn away those who wait."""
        self.semaphore.close()
        self.threads.shutdown(wait=False, cancel_futures=True)


SERVICE: Final = web.AppKey("iceberg", TableService)
