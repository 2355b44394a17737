"""Where the files of a session's tables stand: links in the cache of the home, gone with the session.

Source: clauses SPARKTABLE-4 and SPARKTABLE-13 in ``spec/plug-ins/spark-tables.md``.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from odf_node.home_folder import HomeFolder

_PLACE: Final = "spark-tables"
_LOCK: Final = "lock"
_PRIVATE: Final = 0o700


class SessionFolder:
    """The folder of one session. Its process holds a lock on it, so that others can tell when it ended."""

    def __init__(self, home: HomeFolder) -> None:
        home.create()
        place = home.cache / _PLACE
        place.mkdir(mode=_PRIVATE, exist_ok=True)
        remove_ended(place)
        self.path = place / secrets.token_hex(8)
        self.path.mkdir(mode=_PRIVATE)
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove it; what the home holds stays."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_ended(place: Path) -> None:
    """Remove the folders of sessions whose process ended without doing so."""
    for folder in [*place.iterdir()]:
        with suppress(OSError):
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other processes away from a folder of a table, which is made where it is missing."""
    folder.mkdir(mode=_PRIVATE, exist_ok=True)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
