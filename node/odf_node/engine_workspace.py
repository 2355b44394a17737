"""Folders in which engines work: one per process of ours, gone with it, or swept after it was killed.

Source: clause HOME-18 in ``spec/home.md``.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path
from typing import Final

from odf_engines.sandbox.disk import remove_tree
from odf_node.records.errors import mapped_os_errors

OWNER: Final = "owner"
"""A file in each workspace that its process keeps locked; the lock ends with the process, however that ends."""

_ATTEMPTS: Final = 40
_PAUSE_S: Final = 0.05  # guess: what a sandbox leaves dies within tenths of a second


class EngineWorkspace:
    """The workspace of this process, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._lock = -1

    @property
    def path(self) -> Path:
        """Where engines of this process work.

        Raises:
            HomeFullError, HomeReadOnlyError: It cannot be made.
        """
        if self._path is None:
            with mapped_os_errors(self._folder):
                self._path = self._make()
        return self._path

    def _make(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Under another name until it is locked, so that no sweep takes it for left behind.
        making = Path(tempfile.mkdtemp(prefix=".", dir=self._folder))
        self._lock = os.open(making / OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return making.rename(making.with_name(f"process-{making.name[1:]}"))

    def close(self) -> None:
        """Remove the workspace; safe to repeat."""
        if self._path is not None:
            _remove(self._path)
            os.close(self._lock)
            self._path = None


def sweep_workspaces(folder: Path) -> None:
    """Remove workspaces whose process was killed, and what versions before kept beside them for warm engines."""
    for kept in folder.glob("*.*"):
        if kept.suffix in {".key", ".lock", ".sock"}:
            with contextlib.suppress(OSError):
                kept.unlink()
    for workspace in folder.glob("process-*"):
        with contextlib.suppress(OSError):
            try:
                lock = os.open(workspace / OWNER, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                # Removed in part: a workspace has this file before it has its name.
                remove_tree(workspace)
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(workspace)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder in which processes that are dying may still make files; what stays is for the next sweep."""
    for _ in range(_ATTEMPTS):
        remove_tree(folder)
        if not folder.exists():
            return
        time.sleep(_PAUSE_S)
