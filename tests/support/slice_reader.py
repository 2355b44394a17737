"""The reader of slices, which stays for the next test: its start costs more than all that it reads."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

from odf_engines.host.reader_limits import ReadingLimits
from odf_engines.host.reader_process import PROGRAM, ReaderProcess
from odf_engines.sandbox.resources import usage_of
from odf_node.rows.slice_process import SliceProcess
from odf_protocol.block import Block
from odf_protocol.dataset_view import DatasetView
from odf_protocol.hashing.v1 import TableSummary


class StayingReader(ReaderProcess):
    """The same program under the same limits, asked by one thread at a time; one that died is started again."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()
        self._owner = os.getpid()

    def stands_in_for(self, reader: ReaderProcess) -> bool:
        """Whether a reader of the product is one like this, and not of a process that a test forked."""
        is_usual = type(reader) is ReaderProcess and reader.program == PROGRAM
        return is_usual and reader.limits == ReadingLimits() and os.getpid() == self._owner

    def ask(self, *asked: Any, **more: Any) -> Any:
        with self._turn:
            return super().ask(*asked, **more)


def keep_one_reader() -> StayingReader:
    """Let every check of slices in this process use one reader, whoever asks for it."""
    kept = StayingReader()
    start, ask = ReaderProcess.start, ReaderProcess.ask

    def start_own(reader: ReaderProcess) -> None:
        if not kept.stands_in_for(reader):
            start(reader)

    def ask_kept(reader: ReaderProcess, *asked: Any, **more: Any) -> Any:
        return kept.ask(*asked, **more) if kept.stands_in_for(reader) else ask(reader, *asked, **more)

    ReaderProcess.start = start_own  # type: ignore[method-assign]
    ReaderProcess.ask = ask_kept  # type: ignore[method-assign]
    return kept


class _OwnProcess(ReaderProcess):
    """Not the one that stays."""


class OwnReader(SliceProcess):
    """Of the work itself: the reader that stays for all tests reads one slice at a time and is not ended."""

    def __init__(self, limits: ReadingLimits | None = None) -> None:
        super().__init__(limits)
        self._reader = _OwnProcess(limits)


class FrozenReader(OwnReader):
    """Never answers: its process is stopped before it is asked."""

    def check(self, path: Path, block: Block, view: DatasetView) -> None:
        self._freeze()
        super().check(path, block, view)

    def summarise(self, path: Path, *, max_leaves: int, max_schema_bytes: int) -> TableSummary:
        self._freeze()
        return super().summarise(path, max_leaves=max_leaves, max_schema_bytes=max_schema_bytes)

    def _freeze(self) -> None:
        self.start()
        assert self._reader._process is not None
        for each in usage_of(self._reader._process.process_id).process_ids:
            os.kill(each, signal.SIGSTOP)
