"""What the daemon does again and again beside its server: a thread that looks where there may be news, and rests."""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
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
        read_state: Tells whether a look could find something: as long as its answer stays equal, and the last look left
            nothing waiting, nobody looks.
    """

    def __init__(self, name: str, each_s: float, read_state: Callable[[], object]) -> None:
        self._each_s = each_s
        self._read_state = read_state
        self._is_waiting = True
        self._state: object = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def look(self) -> bool:
        """Do what is due, and say whether something waits for its time."""

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

    def look_at_news(self) -> None:
        """Look, if there may be something; from one thread at a time."""
        # Read before: what is committed during the look is news for the next one.
        state = self._read_state()
        if self._is_waiting or state != self._state:
            self._is_waiting = True  # also when the look fails
            self._is_waiting = self.look()
            self._state = state

    def _run(self) -> None:
        while True:
            began_s = time.thread_time()
            try:
                self.look_at_news()
            except Exception as error:  # noqa: BLE001 - the edge of a thread that goes on for months
                write_line(
                    f"{self._thread.name}-wait", level=logging.ERROR, error=type(error).__name__, text=str(error)
                )
            if self._stop.wait(self._each_s + _REST * (time.thread_time() - began_s)):
                return
