"""Consumers of changes: how far each is, and what it reads next.

A position is a file of its own in the home, by dataset and consumer. What is handed out is noted in it first: after a
failure the same changes come again, whatever was written meanwhile, so a write that is made of them has the same key
and is made once.

Source: clauses TABLE-12 and TABLE-13 in ``spec/plug-ins/tables.md``.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from odf_node.errors import UsageError
from odf_node.front.table_operations import IncrementalRows
from odf_node.home_folder import HomeFolder, name_sinks
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import mapped_os_errors
from odf_protocol.errors import CorruptError
from odf_protocol.multihash import Multihash
from odf_tables.changes import VersionChanges

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_BYTES: Final = 1_000  # guess: ten times two numbers


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a consumer is: the version that it has committed, and the one up to which it was handed changes.

    The hashes are those of the blocks: numbers alone mean another version where a history was replaced.
    """

    version: int = -1
    pending: int | None = None
    hash: str | None = None
    pending_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Consumer:
    """One consumer of one dataset."""

    folder: HomeFolder
    record: DatasetRecord
    name: str

    @classmethod
    def of(cls, folder: HomeFolder, record: DatasetRecord, name: str, *, prefix: str = "") -> "Consumer":
        """Name a consumer.

        Args:
            folder: Of the home.
            record: The dataset.
            name: As who consumes says it.
            prefix: Tells it from those of others under the same name.

        Raises:
            UsageError: It is no name.
        """
        if not _NAME.fullmatch(name):
            raise UsageError("the name of a consumer has 1 to 100 letters, digits, dots, hyphens and underscores")
        return cls(folder, record, f"{prefix}{name}")

    def begin(self, choose_end: Callable[[int], int], find_hash: Callable[[int], Multihash | None]) -> tuple[int, int]:
        """Choose the versions behind and up to which changes are handed out: those that were not committed, again.

        Args:
            choose_end: Gives the version to end with, by that to begin behind.
            find_hash: Gives the hash of a version's block.

        Raises:
            UsageError: The history was replaced before its position.
        """
        with self._locked():
            position = self._load()
            self._require_same_history(position, find_hash)
            until = choose_end(position.version) if position.pending is None else position.pending
            if until > position.version and position.pending is None:
                self._store(Position(position.version, until, position.hash, str(find_hash(until))))
        return position.version, max(until, position.version)

    def read(self, changes: VersionChanges) -> IncrementalRows:
        """Read what comes behind its position; what it was handed and did not commit comes again."""
        since, until = self.begin(lambda _since: changes.relations.get_newest(), changes.relations.find_hash)
        rows = changes.read(since, max(until, 0))
        key = f"{self.name}:{str(self.record.id)[-24:]}:{since}-{until}"
        return IncrementalRows(self.name, since, until, rows, key, partial(self.commit, since, until))

    def commit(self, since: int, until: int) -> None:
        """State that changes were consumed; again for the same ones it does nothing.

        Raises:
            UsageError: The consumer was not handed them, or is elsewhere: another process consumed them, under the
                same name.
        """
        if not self._path.exists():  # no file is made of it
            raise UsageError(f"consumer '{self.name}' was not handed any changes of '{self.record.name}'")
        with self._locked():
            position = self._load()
            if position.version == until:
                return
            if position.version == since and position.pending != until:
                handed = "none" if position.pending is None else f"those up to version {position.pending}"
                raise UsageError(f"consumer '{self.name}' was handed other changes of '{self.record.name}': {handed}")
            if position.version != since:
                place = f"version {position.version} of '{self.record.name}', expected {since}"
                raise UsageError(f"consumer '{self.name}' is at {place}: another process consumes under its name")
            self._store(Position(until, hash=position.pending_hash))

    def _require_same_history(self, position: Position, find_hash: Callable[[int], Multihash | None]) -> None:
        for number, known in ((position.version, position.hash), (position.pending, position.pending_hash)):
            if number is not None and known is not None and str(find_hash(number)) != known:
                raise UsageError(
                    f"consumer '{self.name}' was handed version {number} of another history of '{self.record.name}', "
                    "which was replaced: what it made of that has rows which are gone; begin anew under another name"
                )

    def require_room(self, prefix: str, max_consumers: int) -> None:
        """Check that a new consumer may be made.

        Raises:
            UsageError: There are as many already whose names begin so.
        """
        if self._path.exists():
            return
        if sum(1 for _ in self._path.parent.glob(f"{prefix}*.json")) >= max_consumers:
            raise UsageError(f"a token has {max_consumers} consumers of a dataset at most")

    @property
    def _path(self) -> Path:
        return self.folder.consumers / name_sinks(self.record.id) / f"{self.name}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with mapped_os_errors(self._path):
            self.folder.create()
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = self._path.with_suffix(".lock")
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # held for as long as a file is read and written
            yield
        finally:
            os.close(descriptor)

    def _load(self) -> Position:
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(_MAX_BYTES), type=Position)
        except FileNotFoundError:
            return Position()
        except msgspec.MsgspecError as error:
            raise CorruptError(f"{self._path}: expected the position of a consumer: {error}") from error

    def _store(self, position: Position) -> None:
        part = self._path.with_suffix(".part")
        with mapped_os_errors(self._path):
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(position))
                file.flush()
                os.fsync(file.fileno())
            part.rename(self._path)
