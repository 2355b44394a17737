"""Rows for engines in one folder: ``rows/<2 hex>/<hash>-<checksum>.parquet``, and what is known of them in other forms.

The checksum in the name makes a file prove itself: one that was cut by a power cut or that decayed is not found and is
made again. So nothing here is synced to the disk.

Source: clauses HOME-24 and HOME-25 in ``spec/home.md``.
"""

import os
import secrets
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from odf_node.home_folder import HomeFolder
from odf_node.ports.rows import ROWS, EventTimes, RowsRoom
from odf_node.records.errors import mapped_os_errors
from odf_node.store.writers_lock import shared_lease
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash

ROWS_BYTES: Final = 20_000_000_000
"""Room for rows where no setting says otherwise (``storage.rows_bytes``).  # guess: a part of an ordinary disk"""
IN_USE_S: Final = 900
"""What was asked for within this time is not trimmed: a request may still read it.  # guess: more than one lasts"""

_MAX_EVENT_TIMES: Final = 100_000  # guess: subsets of all inputs of final derivatives; some 40 MB
_event_times: dict[tuple[Multihash, str], EventTimes] = {}
"""Of one process: a daemon opens its home for each piece of work. The rows of an object are the same in any home."""

_KEY_NAME: Final = "fingerprint-key"
_KEY_BYTES: Final = 32
_key_of_process: bytes | None = None

_READ_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Entry:
    name: Multihash
    path: Path
    size_bytes: int
    used_s: float
    is_object: bool


class RowsFolder:
    """``RowsCache`` in ``home.rows``; making the value touches nothing.

    ``limit_bytes`` is how much is kept (0: no limit).
    """

    def __init__(self, home: HomeFolder, limit_bytes: int = ROWS_BYTES) -> None:
        self._home = home
        self.limit_bytes = limit_bytes

    def find(self, object_hash: Multihash, form: str = ROWS) -> Path | None:
        path = self._find_file(object_hash, form)
        if path is None:
            return None
        with suppress(OSError):
            if path.name == _file_name(object_hash, _checksum(path), form):
                if path.stat().st_nlink == 1:  # an object keeps its times
                    os.utime(path)
                return path
            path.unlink()
        return None

    def find_event_times(self, object_hash: Multihash, column: str) -> EventTimes | None:
        return _event_times.get((object_hash, column))

    def remember_event_times(self, object_hash: Multihash, column: str, times: EventTimes) -> None:
        if len(_event_times) >= _MAX_EVENT_TIMES:
            _event_times.pop(next(iter(tuple(_event_times))), None)
        _event_times[object_hash, column] = times

    @contextmanager
    def making(self, object_hash: Multihash, form: str = ROWS) -> Iterator[BinaryIO]:
        # With the lease nobody sweeps the draft away, and one that a kill leaves is swept.
        with shared_lease(self._home), mapped_os_errors(self._home.rows):
            draft = self._home.staging / f"rows-{secrets.token_hex(8)}"
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
                    yield file
                # In the place of the one that is there: who has found that one, or looks just now, needs one.
                made = draft.rename(self._make_shard(object_hash) / _file_name(object_hash, _checksum(draft), form))
                self._drop(path for path in self._list_files(object_hash, form) if path.name != made.name)
            finally:
                draft.unlink(missing_ok=True)

    def adopt(self, object_hash: Multihash, path: Path) -> None:
        with suppress(OSError):
            if self._find_file(object_hash) is None:
                os.link(path, self._make_shard(object_hash) / _file_name(object_hash, _checksum(path), ROWS))

    def fingerprint_key(self) -> bytes:
        global _key_of_process  # a home that cannot be written to has none of its own
        place = self._home.rows / _KEY_NAME
        with suppress(OSError):
            if len(found := place.read_bytes()) == _KEY_BYTES:
                return found
        made = _key_of_process = _key_of_process or secrets.token_bytes(_KEY_BYTES)
        with suppress(OSError):
            self._home.rows.mkdir(mode=0o700, exist_ok=True)
            draft = self._home.staging / f"key-{secrets.token_hex(8)}"  # one that a kill leaves is swept
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
                file.write(made)
            draft.rename(place)
        return made

    def measure(self) -> RowsRoom:
        found = [*self._iter_entries()]
        return RowsRoom(len(found), sum(entry.size_bytes for entry in found if not entry.is_object))

    def get_size(self, object_hash: Multihash) -> int:
        path = self._find_file(object_hash)
        with suppress(OSError):
            return 0 if path is None or self._is_object(object_hash, path) else path.stat().st_size
        return 0

    def trim(self) -> None:
        entries = sorted((e for e in self._iter_entries() if not e.is_object), key=lambda entry: entry.used_s)
        held_bytes = sum(entry.size_bytes for entry in entries)
        in_use_since_s = time.time() - IN_USE_S
        for entry in entries:
            if not self.limit_bytes or held_bytes <= self.limit_bytes or entry.used_s > in_use_since_s:
                break
            entry.path.unlink(missing_ok=True)
            held_bytes -= entry.size_bytes

    def drop(self, object_hash: Multihash) -> None:
        with mapped_os_errors(self._home.rows):
            self._drop(self._list_files(object_hash, ""))

    def sweep(self, is_held: Callable[[Multihash], bool]) -> RowsRoom:
        return self._remove(entry for entry in self._iter_entries() if not is_held(entry.name))

    def clear(self) -> RowsRoom:
        return self._remove(entry for entry in self._iter_entries() if not entry.is_object)

    def _remove(self, entries: Iterator[_Entry]) -> RowsRoom:
        files = size_bytes = 0
        with mapped_os_errors(self._home.rows):
            for entry in [*entries]:
                entry.path.unlink(missing_ok=True)
                files += 1
                size_bytes += 0 if entry.is_object else entry.size_bytes
        return RowsRoom(files, size_bytes)

    @staticmethod
    def _drop(paths: Iterable[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)

    def _find_file(self, object_hash: Multihash, form: str = ROWS) -> Path | None:
        return next(iter(self._list_files(object_hash, form)), None)

    def _list_files(self, object_hash: Multihash, form: str) -> list[Path]:
        """List the files for an object in one form, in all where it is empty."""
        start = f"{object_hash}-"
        with suppress(FileNotFoundError):
            found = self._shard(object_hash).iterdir()
            return [path for path in found if path.name.startswith(start) and path.name.endswith(form)]
        return []

    def _iter_entries(self) -> Iterator[_Entry]:
        with suppress(FileNotFoundError):
            for shard in (each for each in self._home.rows.iterdir() if each.name != _KEY_NAME):
                for path in shard.iterdir():
                    with suppress(OSError, MalformedError):
                        name, found = Multihash.parse(path.name.partition("-")[0]), path.lstat()
                        yield _Entry(name, path, found.st_size, found.st_mtime, self._is_object(name, path))

    def _is_object(self, object_hash: Multihash, path: Path) -> bool:
        with suppress(FileNotFoundError):
            place = self._home.objects / object_hash.digest[:1].hex() / str(object_hash)
            return os.path.samestat(path.lstat(), place.lstat())
        return False

    def _make_shard(self, object_hash: Multihash) -> Path:
        shard = self._shard(object_hash)
        shard.mkdir(mode=0o700, parents=True, exist_ok=True)
        return shard

    def _shard(self, object_hash: Multihash) -> Path:
        return self._home.rows / object_hash.digest[:1].hex()


def _file_name(object_hash: Multihash, checksum: int, form: str) -> str:
    return f"{object_hash}-{checksum:08x}{form}"


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_READ_BYTES):
            found = zlib.crc32(chunk, found)
    return found
