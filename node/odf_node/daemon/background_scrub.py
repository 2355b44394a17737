"""The daemon's scrub: a thread that reads objects slowly, round after round (HOME-47)."""

import logging
import threading
from datetime import UTC, datetime
from typing import Final

from odf_node.adapters.clocks import SystemClock
from odf_node.composition import Node
from odf_node.http.access_log import write_line
from odf_node.http.served_node import Live
from odf_node.upkeep.scrubbing import ScrubState, read_scrub_state
from odf_protocol.errors import OdfError

FIRST_WAIT_S: Final = 60.0  # guess: who has just started the node wants the disk for something else
LOOK_EACH_S: Final = 60.0
_DAY_S: Final = 24 * 3600


class BackgroundScrub:
    """Runs until ``end``; takes its settings from ``live`` each time it begins or goes on."""

    def __init__(self, node: Node, live: Live, *, first_wait_s: float = FIRST_WAIT_S) -> None:
        self._node = node
        self._live = live
        self._first_wait_s = first_wait_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scrub", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._live.damaged_objects = len(read_scrub_state(self._node.home.folder.cache).damaged)
        self._thread.start()

    def end(self) -> None:
        """Stop after the object that is being read; the next process goes on behind it."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        wait_s = self._first_wait_s
        while not self._stop.wait(wait_s):
            wait_s = LOOK_EACH_S
            scrub = self._live.configuration.scrub
            state = read_scrub_state(self._node.home.folder.cache)
            if not scrub.days or not self._node.home.folder.exists() or not _is_due(state, scrub.days):
                self._live.damaged_objects = len(state.damaged)
                continue
            try:
                ended = self._node.scrubber.run(
                    now=SystemClock().now,
                    bytes_per_second=scrub.bytes_per_second,
                    wait=self._stop.wait,
                    on_damage=lambda name: write_line("damaged", level=logging.ERROR, object=name),
                )
            except (OdfError, OSError) as error:
                write_line("scrub-failed", level=logging.ERROR, error=type(error).__name__, text=str(error))
                continue
            self._live.damaged_objects = len(ended.damaged)
            if ended.ended_at is not None:
                write_line("scrubbed", objects=ended.checked, size_bytes=ended.checked_bytes, damaged=ended.damaged)


def _is_due(state: ScrubState, days: int) -> bool:
    if state.began_at is None or state.ended_at is None:
        return True
    age = datetime.now(UTC) - datetime.fromisoformat(state.began_at)
    # A clock that jumped back makes a round look as if it were still to come: then it is due as well.
    return not 0 <= age.total_seconds() < days * _DAY_S
