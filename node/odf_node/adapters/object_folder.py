"""The object port on one folder.

Source: clauses HOME-8, HOME-9, HOME-13 and HOME-19 in ``spec/home.md``.
"""

import hashlib
import math
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from odf_node.adapters.arrival_folder import PART_SUFFIX, ArrivalFolder, link_durably
from odf_node.adapters.rows_folder import RowsFolder
from odf_node.adapters.staged_file import StagedFile
from odf_node.home_folder import QUEUE_PREFIX, HomeFolder, fsync_folder
from odf_node.ports.objects import Room, StagedObject, SweepReport
from odf_node.ports.rows import RowsRoom
from odf_node.records.errors import (
    HomeCorruptError,
    ObjectCorruptError,
    ObjectMismatchError,
    ObjectNotFoundError,
    mapped_os_errors,
)
from odf_node.store.writers_lock import shared_lease, try_exclusive
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp

KEEP_DOWNLOADS_S: Final = 7 * 24 * 3600  # guess: long enough to come back to a pull after a weekend

_READ_BYTES: Final = 1024 * 1024
_ARRIVALS_DIGITS: Final = 32
"""Of a hash in base16: nobody can bring about a second one like it."""
_SUPERSEDED_PREFIX: Final = "superseded-"


class ObjectFolder:
    """``ObjectUpkeep`` in ``home.objects``; making the value touches nothing.

    ``rows`` has what engines read instead of objects of others, which goes with them.
    """

    def __init__(self, home: HomeFolder) -> None:
        self._home = home
        self._folder = str(home.objects)
        self.rows = RowsFolder(home)
        self._durable_shards: set[Path] = set()

    def writing(self) -> AbstractContextManager[None]:
        return shared_lease(self._home)

    def has(self, object_hash: Multihash) -> bool:
        try:
            return stat.S_ISREG(os.lstat(self._name(object_hash)).st_mode)
        except FileNotFoundError:
            return False

    def get_size(self, object_hash: Multihash) -> int:
        return self.get_path(object_hash).lstat().st_size

    def get_path(self, object_hash: Multihash) -> Path:
        path = self._place(object_hash)
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            raise ObjectNotFoundError(object_hash) from None
        if not stat.S_ISREG(mode):
            raise HomeCorruptError(path, "expected an object, found a link or something else that is no plain file")
        return path

    def open(self, object_hash: Multihash) -> BinaryIO:
        return self._open(object_hash)

    def check(self, object_hash: Multihash) -> None:
        with self._open(object_hash) as file:
            found = Multihash(SHA3_256, hashlib.file_digest(file, hashlib.sha3_256).digest())
        if found != object_hash:
            raise ObjectCorruptError(self._place(object_hash), object_hash, found)

    def stage(self) -> StagedFile:
        self._home.create()
        return StagedFile.create(self._home.staging / f"object-{secrets.token_hex(8)}")

    def stage_copy(self, path: Path) -> StagedFile:
        with _open_foreign(path) as source:
            staged = self.stage()
            try:
                while chunk := source.read(_READ_BYTES):
                    staged.write(chunk)
            except BaseException:
                staged.discard()
                raise
            return staged

    def arrivals(
        self, dataset_id: DatasetId, brought_by: str, *, already: Callable[[Multihash], bool]
    ) -> ArrivalFolder:
        whose = hashlib.sha3_256(dataset_id.to_bytes() + b"\0" + brought_by.encode()).hexdigest()
        return ArrivalFolder(self, self._home.downloads / whose[:_ARRIVALS_DIGITS], already)

    def make_downloads(self) -> None:
        """Make the folder in which transfers wait; looking closer would cost more than a small object."""
        if not (self._home.downloads.is_dir() and self._home.objects.is_dir()):
            self._home.create()

    def take_in(self, arrived: Iterable[tuple[Multihash, Path]]) -> None:
        """Give durable files their place among the objects; where an object is, its equal takes its place."""
        shards = set()
        for object_hash, path in arrived:
            target = self._place(object_hash)
            self._make_shard(target.parent)
            link_durably(path, self._home.staging / f"object-{secrets.token_hex(8)}", target)
            shards.add(target.parent)
        for shard in shards:
            with mapped_os_errors(shard):
                fsync_folder(shard)

    def resume(self, object_hash: Multihash) -> StagedFile:
        self.make_downloads()
        name = f"{self._place(object_hash).name}{PART_SUFFIX}"
        return StagedFile.find_resumable(self._home.downloads / name) or self.stage()

    def put(self, staged: StagedObject, expected_hash: Multihash) -> None:
        if not isinstance(staged, StagedFile):
            raise TypeError(f"expected an object staged here, found {type(staged).__name__}")
        target = self._place(expected_hash)
        if staged.hash != expected_hash:
            found, size_bytes = staged.hash, staged.size_bytes
            staged.discard()
            raise ObjectMismatchError(expected_hash, found, size_bytes)
        self._make_shard(target.parent)
        # Also where the object exists: its writer may have been killed before it was durable, or its bytes decayed.
        staged.move_to(target)
        with mapped_os_errors(target):
            fsync_folder(target.parent)

    def delete(self, object_hash: Multihash) -> None:
        path = self._place(object_hash)
        with mapped_os_errors(path):
            path.unlink(missing_ok=True)
        # May be another name of the same file, which would keep its room.
        self.rows.drop(object_hash)

    def delete_later(self, hashes: Iterable[Multihash]) -> None:
        for object_hash in hashes:
            note = self._home.staging / f"{_SUPERSEDED_PREFIX}{object_hash}"
            with mapped_os_errors(note):
                note.touch(mode=0o600)

    def delete_unnamed(self, is_named: Callable[[Multihash], bool]) -> bool:
        if not self._home.staging.is_dir():
            return True
        with try_exclusive(self._home) as alone:
            if alone:
                for note in sorted(self._home.staging.glob(f"{_SUPERSEDED_PREFIX}*")):
                    with suppress(MalformedError):
                        object_hash = Multihash.parse(note.name.removeprefix(_SUPERSEDED_PREFIX))
                        if not is_named(object_hash):
                            self.delete(object_hash)
                    note.unlink(missing_ok=True)
            return alone

    def set_aside(self, object_hash: Multihash) -> None:
        place = self._place(object_hash)
        with mapped_os_errors(place), suppress(FileNotFoundError):
            place.rename(self._aside(object_hash))

    def take_back(self, object_hash: Multihash) -> None:
        place, aside = self._place(object_hash), self._aside(object_hash)
        with mapped_os_errors(place):
            if self.has(object_hash):
                aside.unlink(missing_ok=True)
            else:
                with suppress(FileNotFoundError):
                    aside.rename(place)

    def iter_hashes(self) -> Iterator[Multihash]:
        for path in self._iter_files():
            with suppress(MalformedError):
                object_hash = Multihash.parse(path.name)
                if self._place(object_hash) == path:
                    yield object_hash

    def measure(self) -> Room:
        count = used_bytes = 0
        # Parts take room as well, also where nobody goes on with them; they are no objects yet.
        for path in chain(self._iter_files(), self._iter_parts()):
            with suppress(FileNotFoundError):
                used_bytes += path.lstat().st_size
                count += path.suffix != PART_SUFFIX
        try:
            free_bytes = shutil.disk_usage(self._home.path).free
        except FileNotFoundError:
            free_bytes = shutil.disk_usage(next(p for p in self._home.path.parents if p.exists())).free
        return Room(count, used_bytes, free_bytes)

    def has_leftovers(self, *, now: Timestamp) -> bool:
        kept_since_s = now.seconds - KEEP_DOWNLOADS_S
        # The file of a queue stays behind each writer; it goes with the next sweep, and is none's reason for one.
        staged = (path for path in self._iter_staged() if not path.name.startswith(QUEUE_PREFIX))
        return any(True for _ in chain(staged, self._iter_old_downloads(kept_since_s)))

    def sweep(
        self,
        find_referenced: Callable[[], Iterable[Multihash]],
        *,
        now: Timestamp,
        keep_arrived: bool = True,
        dry_run: bool = False,
    ) -> SweepReport:
        if not self._home.path.is_dir():
            return SweepReport(ran=True)
        with try_exclusive(self._home) as alone:
            if not alone:
                return SweepReport(ran=False)
            # A clock that is ahead ends what is kept, and nothing that was committed (DAEMON-16).
            kept_since_s = now.seconds - KEEP_DOWNLOADS_S if keep_arrived else math.inf
            report = self._sweep(set(find_referenced()), kept_since_s, _size if dry_run else _remove)
            rows = RowsRoom() if keep_arrived or dry_run else self.rows.clear()
            return replace(report, row_files=rows.files, freed_bytes=report.freed_bytes + rows.size_bytes)

    def _open(self, object_hash: Multihash) -> BufferedReader:
        path = self.get_path(object_hash)
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
        except FileNotFoundError:
            raise ObjectNotFoundError(object_hash) from None

    def _sweep(self, referenced: set[Multihash], kept_since_s: float, free: Callable[[Path], int]) -> SweepReport:
        objects = staged_files = freed_bytes = 0
        with mapped_os_errors(self._home.path):
            for object_hash in self.iter_hashes():
                if object_hash not in referenced:
                    freed_bytes += free(self._place(object_hash))
                    objects += 1
            for entry in (*self._iter_staged(), *self._iter_old_downloads(kept_since_s)):
                whole = sum(path.suffix != PART_SUFFIX for path in entry.iterdir()) if _is_arrivals(entry) else 0
                freed_bytes += free(entry)
                objects += whole
                staged_files += not whole
            freed_bytes += self.rows.sweep(self.has).size_bytes
            self.rows.trim()
        return SweepReport(ran=True, objects=objects, staged_files=staged_files, freed_bytes=freed_bytes)

    def _iter_staged(self) -> Iterator[Path]:
        kept = {self._home.downloads, self._home.refused, self._home.engines}
        with suppress(FileNotFoundError):
            yield from (path for path in sorted(self._home.staging.iterdir()) if path not in kept)

    def _iter_old_downloads(self, kept_since_s: float) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            for path in sorted(self._home.downloads.iterdir()):
                if path.lstat().st_mtime < kept_since_s:
                    yield path

    def _iter_parts(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            for entry in self._home.downloads.iterdir():
                # A transfer that ends takes its folder with it.
                with suppress(FileNotFoundError, NotADirectoryError):
                    yield from entry.iterdir()

    def _iter_files(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            for shard in self._home.objects.iterdir():
                if shard.is_dir() and not shard.is_symlink():
                    yield from shard.iterdir()

    def _place(self, object_hash: Multihash) -> Path:
        return Path(self._name(object_hash))

    def _name(self, object_hash: Multihash) -> str:
        """Give the path as text: it is asked for so often that putting a ``Path`` together would be felt."""
        if object_hash.code != SHA3_256:
            raise ValueError(f"objects are named by SHA3-256, found multihash code {object_hash.code:#x}")
        return f"{self._folder}/{object_hash.digest[:1].hex()}/{object_hash}"

    def _aside(self, object_hash: Multihash) -> Path:
        return self._home.cache / f"damaged-{object_hash}"

    def _make_shard(self, shard: Path) -> None:
        if shard in self._durable_shards:
            return
        with mapped_os_errors(shard):
            shard.mkdir(mode=0o700, exist_ok=True)
            # Also where it exists: whoever made it may have been killed before its name was durable.
            fsync_folder(shard.parent)
        self._durable_shards.add(shard)


def _is_arrivals(path: Path) -> bool:
    return path.parent.name == "downloads" and path.is_dir() and not path.is_symlink()


def _open_foreign(path: Path) -> BinaryIO:
    try:
        # Non-blocking: opening a pipe that an engine left in our way must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise MalformedError("file to keep", where=str(path), expected="a plain file", found=error.strerror) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise MalformedError("file to keep", where=str(path), expected="a plain file", found="another kind of file")
    return os.fdopen(descriptor, "rb", buffering=0)


def _size(path: Path) -> int:
    entry = path.lstat()
    if stat.S_ISDIR(entry.st_mode):
        return sum(file.lstat().st_size for file in path.rglob("*"))
    return entry.st_size


def _remove(path: Path) -> int:
    size_bytes = _size(path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    return size_bytes
