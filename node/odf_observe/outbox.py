"""What is to be told to somebody who may be slow or away: a bounded queue and a thread that empties it.

Whoever puts something into it never waits. Where there is no room left it is dropped, which is counted and told.

Source: clause OBSERVE-3 in ``spec/observing.md``.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

END_WAIT_S: Final = 1.0
"""How long the end of a command waits for what was not told yet.  # guess: a collector nearby takes milliseconds"""

_ROOM: Final = 2048  # as OpenTelemetry's own queue of spans
_SUBSET: Final = 256  # guess: some hundred kilobytes
_REPORTED_EACH_S: Final = 60.0
_LOGGER: Final = logging.getLogger("odf_node.observing")

_Item = TypeVar("_Item")


class Outbox(Generic[_Item]):
    """Sends items in the order in which they were put in.

    Args:
        what: The items in the plural, for messages: ``spans``.
        where: They are sent, without anything secret.
        send: Sends some of them, however long that takes; says why it could not, None where it could.
        room: How many may wait.
        subset: How many are sent together at most.
    """

    def __init__(
        self,
        what: str,
        where: str,
        send: Callable[[Sequence[_Item]], str | None],
        *,
        room: int = _ROOM,
        subset: int = _SUBSET,
    ) -> None:
        self._what, self._where, self._send, self._room = what, where, send, room
        self._subset = subset
        self._waiting: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._in_flight = self._reported_until = 0
        self._reported_at_s = -_REPORTED_EACH_S
        self.counts = {"sent": 0, "failed": 0, "dropped": 0}

    def put(self, item: _Item) -> None:
        """Take something to be sent, or drop it."""
        with self._changed:
            if len(self._waiting) >= self._room:
                self.counts["dropped"] += 1
                return
            self._waiting.append(item)
            if self._thread is None:
                # Nothing at the end of the program waits for it but ``flush``.
                self._thread = threading.Thread(target=self._run, name=f"sends {self._what}", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until nothing waits, but no longer; then say what was lost or still waits."""
        end_s = time.monotonic() + END_WAIT_S
        with self._changed:
            while (self._waiting or self._in_flight) and (left_s := end_s - time.monotonic()) > 0:
                self._changed.wait(left_s)
            waiting = len(self._waiting) + self._in_flight
        if waiting:
            _LOGGER.warning("%s %s wait for %s, which is slow or away", f"{waiting:,}", self._what, self._where)
        self._report_losses("", at_once=True)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                subset = [self._waiting.popleft() for _ in range(min(self._subset, len(self._waiting)))]
                self._in_flight = len(subset)
            try:
                reason = self._send(subset)
            except Exception as error:  # noqa: BLE001 - a library's failure must not end the thread
                reason = type(error).__name__
            with self._changed:
                self.counts["sent" if reason is None else "failed"] += len(subset)
                self._in_flight = 0
                self._changed.notify_all()
            if reason is not None:
                self._report_losses(reason, at_once=False)

    def _report_losses(self, reason: str, *, at_once: bool) -> None:
        """Say how many were lost since that was said last; once a minute, or at the end."""
        with self._changed:
            lost = self.counts["failed"] + self.counts["dropped"]
            is_due = at_once or time.monotonic() - self._reported_at_s >= _REPORTED_EACH_S
            new = lost - self._reported_until
            if not new or not is_due:
                return
            self._reported_until, self._reported_at_s = lost, time.monotonic()
        _LOGGER.warning(
            "%s %s were not delivered to %s%s", f"{new:,}", self._what, self._where, f": {reason}" if reason else ""
        )
