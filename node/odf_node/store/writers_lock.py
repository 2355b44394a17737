"""Processes on one home, kept apart by file locks that end with their holders: writers and sweeps, and daemons."""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HomeBusyError, HomeFullError, HomeReadOnlyError, HomeServedError, mapped_os_errors

SWEEP_WAIT_S: Final = 60.0  # guess: a sweep of a million objects takes seconds
_POLL_S: Final = 0.02


@contextmanager
def shared_lease(home: HomeFolder) -> Iterator[None]:
    """Hold the lock with other writers; makes the home if it is missing, waits for a running sweep.

    A marker in the staging folder stays behind when the lease ends by an error or a kill: then there may be objects
    that nothing refers to, and somebody should sweep.

    Raises:
        HomeBusyError: A sweep did not end in time.
        HomeReadOnlyError, HomeFullError: The lock or the marker cannot be made.
    """
    home.create()
    descriptor = _open(home.writers_lock)
    try:
        give_up_at = time.monotonic() + SWEEP_WAIT_S
        while not _try_lock(descriptor, fcntl.LOCK_SH):
            if time.monotonic() > give_up_at:
                raise HomeBusyError(home.writers_lock, SWEEP_WAIT_S)
            time.sleep(_POLL_S)
        marker = home.staging / f"lease-{secrets.token_hex(8)}"
        with mapped_os_errors(marker):
            marker.touch(mode=0o600)
        yield
        # What was written under the lease is there; a marker that stays asks for a sweep, which finds nothing.
        with suppress(OSError):
            marker.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


@contextmanager
def try_exclusive(home: HomeFolder) -> Iterator[bool]:
    """Hold the lock alone if nobody else holds it now; the value says whether it is held."""
    descriptor = _open(home.writers_lock)
    try:
        yield _try_lock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


@contextmanager
def only_daemon(home: HomeFolder) -> Iterator[None]:
    """Keep other daemons from an existing home; one that cannot be written has nothing that two could do twice.

    Raises:
        HomeServedError: One serves it.
    """
    try:
        descriptor = _open(home.daemon_lock)
    except (HomeFullError, HomeReadOnlyError, OSError):
        yield
        return
    try:
        if not _try_lock(descriptor, fcntl.LOCK_EX):
            raise HomeServedError(home.path)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    with mapped_os_errors(path):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
