"""Objects that one caller brought for one dataset: apart from all others until they are accepted.

A folder of its own in ``staging/downloads``: parts of objects, and whole ones under their hash. It stays when the
transfer breaks, also by a kill, and whoever brings the same dataset again goes on with it (HOME-19). One transfer uses
it at a time; another one at the same time gets an empty folder that goes with it.

Source: clauses EX-80 and EX-81 in ``spec/extensions/exchange.md``; HOME-19 in ``spec/home.md``.
"""

import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, Protocol, Self

from odf_node.adapters.staged_file import StagedFile, is_same_file
from odf_node.ports.objects import StagedObject
from odf_node.records.errors import HomeCorruptError, ObjectMismatchError, ObjectNotFoundError, mapped_os_errors
from odf_protocol.multihash import SHA3_256, Multihash

PART_SUFFIX: Final = ".part"


class AcceptedObjects(Protocol):
    """What a folder of arrivals needs of the objects beside it."""

    def has(self, object_hash: Multihash) -> bool:
        """Whether it is there."""
        ...

    def get_path(self, object_hash: Multihash) -> Path:
        """Return where it is.

        Raises:
            ObjectNotFoundError, HomeCorruptError: It is not there; or what is there is no plain file.
        """
        ...

    def stage(self) -> StagedFile:
        """Begin an object of which nothing is there."""
        ...

    def stage_copy(self, path: Path) -> StagedFile:
        """Begin an object as a copy of a file of somebody else."""
        ...

    def make_downloads(self) -> None:
        """Make the folder in which transfers wait."""
        ...

    def take_in(self, arrived: Iterable[tuple[Multihash, Path]]) -> None:
        """Give durable files their place among the objects."""
        ...


class ArrivalFolder:
    """``Arrivals`` on the disk of the object store; nothing is made before something arrives."""

    def __init__(self, objects: AcceptedObjects, folder: Path, already: Callable[[Multihash], bool]) -> None:
        self._objects = objects
        self._folder = folder
        self._already = already
        self._opening = Lock()  # several objects arrive at once
        self._lock: int | None = None
        self._is_shared_name = True
        if folder.is_dir():
            self._open()

    def has(self, object_hash: Multihash) -> bool:
        return self._arrived(object_hash) or (self._already(object_hash) and self._objects.has(object_hash))

    def get_size(self, object_hash: Multihash) -> int:
        return self.get_path(object_hash).lstat().st_size

    def get_path(self, object_hash: Multihash) -> Path:
        if self._arrived(object_hash):
            return self._place(object_hash)
        if self._already(object_hash):
            return self._objects.get_path(object_hash)
        raise ObjectNotFoundError(object_hash)

    def count_arrived(self, object_hash: Multihash) -> int:
        if self.has(object_hash):
            return self.get_size(object_hash)
        place = self._place(object_hash)
        try:
            return 0 if self._lock is None else place.with_name(f"{place.name}{PART_SUFFIX}").lstat().st_size
        except FileNotFoundError:
            return 0

    def stage(self) -> StagedFile:
        return self._objects.stage()

    def stage_copy(self, path: Path) -> StagedFile:
        return self._objects.stage_copy(path)

    def resume(self, object_hash: Multihash) -> StagedFile:
        self._open()
        place = self._place(object_hash)
        return StagedFile.find_resumable(place.with_name(f"{place.name}{PART_SUFFIX}")) or self.stage()

    def put(self, staged: StagedObject, expected_hash: Multihash) -> None:
        if not isinstance(staged, StagedFile):
            raise TypeError(f"expected an object staged here, found {type(staged).__name__}")
        if staged.hash != expected_hash:
            found, size_bytes = staged.hash, staged.size_bytes
            staged.discard()
            raise ObjectMismatchError(expected_hash, found, size_bytes)
        self._open()
        # Durable under this name, so that after a power cut a name still means whole bytes.
        staged.move_to(self._place(expected_hash))

    def keep(self, hashes: Iterable[Multihash]) -> None:
        arrived = []
        for object_hash in hashes:
            if self._arrived(object_hash):
                arrived.append((object_hash, self._place(object_hash)))
            elif not self.has(object_hash):
                raise ObjectNotFoundError(object_hash)
        self._objects.take_in(arrived)

    def drop(self) -> None:
        if self._lock is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._release()

    def close(self) -> None:
        if self._lock is None:
            return
        if not self._is_shared_name:
            self.drop()
            return
        with suppress(OSError):  # something is in it: it stays for whoever goes on
            self._folder.rmdir()
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _arrived(self, object_hash: Multihash) -> bool:
        if self._lock is None:
            return False
        place = self._place(object_hash)
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(mode):
            raise HomeCorruptError(place, "expected an object, found a link or something else that is no plain file")
        return True

    def _place(self, object_hash: Multihash) -> Path:
        if object_hash.code != SHA3_256:
            raise ValueError(f"objects are named by SHA3-256, found multihash code {object_hash.code:#x}")
        return self._folder / str(object_hash)

    def _open(self) -> None:
        """Make the folder and hold it; where another transfer holds it, hold one that nobody else knows."""
        with self._opening:
            while self._lock is None:
                self._try_open()

    def _try_open(self) -> None:
        with mapped_os_errors(self._folder):
            self._objects.make_downloads()
            self._folder.mkdir(mode=0o700, exist_ok=True)
            try:
                descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                return  # its last holder removed it just now
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            self._folder = self._folder.with_name(f"{self._folder.name}-{secrets.token_hex(8)}")
            self._is_shared_name = False
            return
        if is_same_file(self._folder, descriptor):
            self._lock = descriptor
        else:
            os.close(descriptor)

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def link_durably(source: Path, draft: Path, target: Path) -> None:
    """Give a durable file a second name, at which it replaces what is there; the folder is not made durable yet."""
    with mapped_os_errors(target):
        os.link(source, draft)
        try:
            draft.rename(target)
        finally:
            draft.unlink(missing_ok=True)  # renaming one name of a file to another does nothing (rename(2))
