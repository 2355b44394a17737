"""A file on its way to become an object: appended to, hashed while it is written, private until it is put."""

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from odf_node.adapters.hashing_thread import start_thread
from odf_node.records.errors import mapped_os_errors
from odf_protocol.multihash import SHA3_256, Multihash

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_READ_BYTES: Final = 1024 * 1024
_BESIDE_BYTES: Final = 512 * 1024
"""From here on a write and its hash take far longer than giving one of them to another thread (guess)."""
_WRITE_BACK_BYTES: Final = 8 * 1024 * 1024  # guess: some milliseconds of a disk; smaller objects are left alone


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
        self._written_back_bytes = 0
        self._hasher = hashlib.sha3_256()
        self._beside: ThreadPoolExecutor | None = None

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
        if not is_same_file(path, descriptor):
            os.close(descriptor)
            return cls.find_resumable(path)
        staged = cls(path, descriptor, resumable=True)
        staged._read_what_is_there()
        return staged

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @property
    def hash(self) -> Multihash:
        return Multihash(SHA3_256, self._hasher.digest())

    @property
    def path(self) -> Path:
        return self._path

    def write(self, *chunks: bytes | bytearray | memoryview) -> None:
        views = [memoryview(chunk).cast("B") for chunk in chunks]
        before = self._hasher.copy()
        try:
            with self._hashing(views):
                self._append(views)
        except BaseException:
            # What is not in the file is not in its hash.
            self._hasher = before
            raise

    def flush(self) -> None:
        """See ``StagedObject``; nothing is held back here."""

    def restart(self) -> None:
        with mapped_os_errors(self._path):
            os.ftruncate(self._descriptor, 0)
        self._size_bytes = self._written_back_bytes = 0
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

    def _append(self, views: Sequence[memoryview]) -> None:
        position = self._size_bytes
        with mapped_os_errors(self._path):
            try:
                for view in views:
                    left = view
                    while left:
                        written = os.pwrite(self._descriptor, left, position)
                        left = left[written:]
                        position += written
            except OSError:
                # A part of the chunks on the disk would be a part that was not hashed.
                os.ftruncate(self._descriptor, self._size_bytes)
                raise
        self._size_bytes = position
        if position - self._written_back_bytes >= _WRITE_BACK_BYTES:
            # Linux begins to write to the disk what is not wanted any more, which the fsync then need not wait for.
            size_bytes = position - self._written_back_bytes
            os.posix_fadvise(self._descriptor, self._written_back_bytes, size_bytes, os.POSIX_FADV_DONTNEED)
            self._written_back_bytes = position

    @contextmanager
    def _hashing(self, views: Sequence[memoryview]) -> Iterator[None]:
        """Hash the bytes, in another thread while the caller works where that is worth it."""
        if sum(map(len, views)) < _BESIDE_BYTES:
            yield
            self._hash(views)
            return
        if self._beside is None:
            self._beside = start_thread()
        hashing = self._beside.submit(self._hash, views)
        try:
            yield
        finally:
            hashing.result()

    def _hash(self, views: Sequence[memoryview]) -> None:
        for view in views:
            self._hasher.update(view)

    def _close(self) -> None:
        if self._beside is not None:
            self._beside.shutdown()
            self._beside = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read_what_is_there(self) -> None:
        while chunk := os.pread(self._descriptor, _READ_BYTES, self._size_bytes):
            self._hasher.update(chunk)
            self._size_bytes += len(chunk)
        self._written_back_bytes = self._size_bytes


def is_same_file(path: Path, descriptor: int) -> bool:
    """Say whether a path still leads to what was opened there."""
    try:
        named = path.lstat()
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
