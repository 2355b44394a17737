"""The queue of writers of one dataset: a file lock that ends with its holder; who has it is the next to commit.

It only saves writers from merging in vain. A sweep may remove its file, as everything in the staging folder, while no
writer is at work.

Source: clause TABLE-8 in ``spec/plug-ins/tables.md``.
"""

import fcntl
import hashlib
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_node.home_folder import QUEUE_PREFIX, HomeFolder
from odf_node.records.errors import mapped_os_errors
from odf_protocol.did import DatasetId

_POLL_S: Final = 0.02  # as of the writers' lock
_NAME_DIGITS: Final = 32  # of a hash


@dataclass(frozen=True, slots=True)
class WriteQueue:
    """Of one dataset; the caller holds a writing lease, so the folder is there."""

    folder: HomeFolder
    dataset_id: DatasetId

    @property
    def _path(self) -> Path:
        digest = hashlib.sha3_256(str(self.dataset_id).encode()).hexdigest()
        return self.folder.staging / f"{QUEUE_PREFIX}{digest[:_NAME_DIGITS]}"

    def is_held(self) -> bool:
        """Say whether a writer has its place now."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    @contextmanager
    def entered(self, give_up_at: float) -> Iterator[bool]:
        """Wait to be the next; the value says whether this writer is, or that time is up.

        Args:
            give_up_at: By the monotonic clock.

        Raises:
            HomeReadOnlyError, HomeFullError: The lock cannot be made.
        """
        with mapped_os_errors(self._path):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            while not (is_first := _try_lock(descriptor, fcntl.LOCK_EX)) and time.monotonic() < give_up_at:
                time.sleep(random.uniform(_POLL_S / 4, _POLL_S))  # noqa: S311 - no secret
            yield is_first
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
