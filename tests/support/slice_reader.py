"""The reader of slices, which stays for the next test: its start costs more than all that it reads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from subprocess import Popen
from typing import Any

from odf_node.services import transforms, verification
from odf_node.services.slice_process import SliceProcess


class StayingReader(SliceProcess):
    """The same program under the same limits, asked by one thread at a time; one that died is started again."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()
        # It ends with the thread that started it, and those of tests come and go.
        self._starter = ThreadPoolExecutor(1, "slice-reader")

    def __exit__(self, *exception: object) -> None:
        """Stay."""

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
    """Let every check of slices in this process use one reader."""
    reader = StayingReader()
    for module in (transforms, verification):
        module.SliceProcess = lambda: reader  # type: ignore[misc, assignment]
    return reader
