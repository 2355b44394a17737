"""A file on its way to become an object: appended to, hashed while it is written, private until it is put."""

import fcntl
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from odf_node.os_errors import mapped_os_errors
from odf_protocol.multihash import SHA3_256, Multihash

_READ_BYTES: Final = 1024 * 1024


class StagedFile:
    """``StagedObject`` on the local disk.

    A new file is removed on leaving. A resumable one stays for the next attempt and is locked against other
    processes while it is open.
    """

    def __init__(self, path: Path, descriptor: int, *, resumable: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self._resumable = resumable
        self._size_bytes = 0
        self._hasher = hashlib.sha3_256()

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make a new file at ``path``, which nobody else uses."""
        with mapped_os_errors(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            return cls(path, os.open(path, flags, 0o600), resumable=False)

    @classmethod
    def find_resumable(cls, path: Path) -> Self | None:
        """Open the file at ``path``, made if missing, at its end; None when another process is writing it."""
        with mapped_os_errors(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        # Between open and lock its last writer may have finished, and the file be an object by now.
        if not _is_same_file(path, descriptor):
            os.close(descriptor)
            return cls.find_resumable(path)
        staged = cls(path, descriptor, resumable=True)
        staged._read_what_is_there()
        return staged

    @property
    def size_bytes(self) -> int:
        """See ``StagedObject``."""
        return self._size_bytes

    @property
    def hash(self) -> Multihash:
        """See ``StagedObject``."""
        return Multihash(SHA3_256, self._hasher.digest())

    @property
    def path(self) -> Path:
        """See ``StagedObject``."""
        return self._path

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """See ``StagedObject``."""
        with memoryview(chunk).cast("B") as view, mapped_os_errors(self._path):
            written = 0
            try:
                while written < len(view):
                    written += os.pwrite(self._descriptor, view[written:], self._size_bytes + written)
            except OSError:
                # A part of the chunk on the disk would be a part that was not hashed.
                os.ftruncate(self._descriptor, self._size_bytes)
                raise
            self._hasher.update(view)
            self._size_bytes += len(view)

    def flush(self) -> None:
        """See ``StagedObject``; nothing is held back here."""

    def restart(self) -> None:
        """See ``StagedObject``."""
        with mapped_os_errors(self._path):
            os.ftruncate(self._descriptor, 0)
        self._size_bytes = 0
        self._hasher = hashlib.sha3_256()

    def move_to(self, target: Path) -> None:
        """Make the bytes durable, then give the file its final name, at which it replaces what is there."""
        with mapped_os_errors(self._path):
            os.fsync(self._descriptor)
            # Close, then rename: a resumable file must not be locked by its last writer once it is an object.
            self._close()
            self._path.rename(target)

    def discard(self) -> None:
        """Remove the file, also a resumable one."""
        with suppress(FileNotFoundError):
            self._path.unlink()
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._descriptor < 0:
            return
        if self._resumable and self._size_bytes > 0:
            self._close()
        else:
            self.discard()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read_what_is_there(self) -> None:
        while chunk := os.pread(self._descriptor, _READ_BYTES, self._size_bytes):
            self._hasher.update(chunk)
            self._size_bytes += len(chunk)


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        named = path.lstat()
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
