"""What the daemon does again and again beside its server: a thread that looks, and rests."""

import logging
import threading
import time
from abc import ABC, abstractmethod
from typing import Final

from odf_node.http.access_log import write_line

LOOK_EACH_S: Final = 1.0  # guess: how soon people want to hear
_REST: Final = 3
"""Looking rests so many times as long as it took: a quarter of one processor at most.  # guess"""


class RepeatedLook(ABC):
    """Looks from ``start`` to ``end``.

    Args:
        name: Of the thread, and of the line of the log when a look fails.
        each_s: The least rest between two looks.
    """

    def __init__(self, name: str, each_s: float) -> None:
        self._each_s = each_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def look(self) -> None:
        """Do what is due."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self, wait_s: float | None = None) -> None:
        """Stop; what was not done is done by the next process.

        Args:
            wait_s: How long to wait for a look that goes on; None for as long as it takes.
        """
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(wait_s)

    def _run(self) -> None:
        while True:
            began_s = time.thread_time()
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - the edge of a thread that goes on for months
                write_line(
                    f"{self._thread.name}-wait", level=logging.ERROR, error=type(error).__name__, text=str(error)
                )
            if self._stop.wait(self._each_s + _REST * (time.thread_time() - began_s)):
                return
