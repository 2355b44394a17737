"""The reader of slices, which stays for the next test: its start costs more than all that it reads."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from subprocess import Popen
from typing import Any

from odf_node.rows.slice_process import ReadingLimits, SliceProcess


class StayingReader(SliceProcess):
    """The same program under the same limits, asked by one thread at a time; one that died is started again."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()
        # It ends with the thread that started it, and those of tests come and go.
        self._starter = ThreadPoolExecutor(1, "slice-reader")
        self._owner = os.getpid()

    def stands_in_for(self, reader: SliceProcess) -> bool:
        """Whether a reader of the product is one like this, and not of a process that a test forked."""
        return type(reader) is SliceProcess and reader._limits == ReadingLimits() and os.getpid() == self._owner

    def end(self) -> None:
        """End the process."""
        self._end()
        self._starter.shutdown()

    def _ask(self, *request: Any) -> Any:
        with self._turn:
            return super()._ask(*request)

    def _start(self) -> "Popen[bytes]":
        return self._starter.submit(super()._start).result()


def keep_one_reader() -> StayingReader:
    """Let every check of slices in this process use one reader, whoever asks for it."""
    kept = StayingReader()
    start, ask = SliceProcess.start, SliceProcess._ask

    def start_own(reader: SliceProcess) -> None:
        if not kept.stands_in_for(reader):
            start(reader)

    def ask_kept(reader: SliceProcess, *request: Any) -> Any:
        return kept._ask(*request) if kept.stands_in_for(reader) else ask(reader, *request)

    SliceProcess.start = start_own  # type: ignore[method-assign]
    SliceProcess._ask = ask_kept  # type: ignore[method-assign]
    return kept
