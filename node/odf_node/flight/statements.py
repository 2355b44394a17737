"""Prepared statements: a text that was understood once, kept for whoever prepared it (FLIGHT-11)."""

import secrets
import threading
from collections import OrderedDict
from typing import Final

MOST_OF_ONE: Final = 64  # guess
MOST: Final = 1_000  # guess: of 200,000 characters at most
_HANDLE_BYTES: Final = 32


class Statements:
    """Keeps texts by handles that nobody else can know; who was not asked for longest goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, owner: str, sql: str) -> bytes:
        """Keep a text for somebody; returns its handle."""
        handle = secrets.token_bytes(_HANDLE_BYTES)
        with self._lock:
            self._kept[handle] = (owner, sql)
            own = [each for each, (other, _) in self._kept.items() if other == owner]
            for old in own[:-MOST_OF_ONE]:
                del self._kept[old]
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return handle

    def find(self, handle: bytes, owner: str) -> str | None:
        """Return a text; None: it is another's, or gone, or never was."""
        with self._lock:
            kept = self._kept.get(handle)
            if kept is None or kept[0] != owner:
                return None
            self._kept.move_to_end(handle)
            return kept[1]

    def drop(self, handle: bytes, owner: str) -> None:
        """Forget a text, if it is theirs."""
        with self._lock:
            if self._kept.get(handle, ("", ""))[0] == owner:
                del self._kept[handle]
