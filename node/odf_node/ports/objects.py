"""Immutable files named by their hash."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

LARGE_BYTES: Final = 16 * 1024 * 1024
"""From here on a slice is read as soon as it is here, while others arrive (ROWS-7).

Guess: reading it takes longer than to start a reader for it.
"""


class StagedObject(Protocol):
    """A file being made, private to its maker until ``ObjectStore.put``. Used by one thread at a time.

    A context manager: leaving it closes the file, and removes it unless it was put or is kept for a resume.
    """

    @property
    def size_bytes(self) -> int:
        """Bytes written so far; after ``ObjectStore.resume``, the position at which to continue."""
        ...

    @property
    def hash(self) -> Multihash:
        """SHA3-256 of the bytes written so far, without reading them again."""
        ...

    @property
    def path(self) -> Path:
        """The local file, for reading by other code of this node while the object is staged. ``flush`` first."""
        ...

    def write(self, *chunks: bytes | bytearray | memoryview) -> None:
        """Append bytes, all of them or none; they must not change meanwhile.

        Raises:
            HomeFullError: There is no room; what was staged is still whole up to ``size_bytes``.
        """
        ...

    def flush(self) -> None:
        """Hand everything written so far to the operating system, so that ``path`` shows it."""
        ...

    def restart(self) -> None:
        """Throw away what was written and begin at position 0 (a resumed download that turned out wrong)."""
        ...

    def __enter__(self) -> "StagedObject":
        """Return the staged object itself."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Close; remove the file unless it was put or belongs to a resumable download that is not finished."""
        ...


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep removed; ``ran`` is False when somebody was writing and nothing was looked at."""

    ran: bool
    objects: int = 0
    staged_files: int = 0
    freed_bytes: int = 0
    row_files: int = 0


@dataclass(frozen=True, slots=True)
class Room:
    """What the objects take of the disk, and what is left on it."""

    objects: int
    used_bytes: int
    free_bytes: int


class ArrivingObjects(Protocol):
    """What of an ``ObjectStore`` those use who bring objects from elsewhere; its methods do as they do there."""

    def has(self, object_hash: Multihash) -> bool:
        """Say whether the object is here, whole."""
        ...

    def get_size(self, object_hash: Multihash) -> int:
        """Return the object's length in bytes."""
        ...

    def stage(self) -> StagedObject:
        """Begin a new object."""
        ...

    def stage_copy(self, path: Path) -> StagedObject:
        """Begin a new object with the bytes of a file."""
        ...

    def resume(self, object_hash: Multihash) -> StagedObject:
        """Continue where an earlier attempt stopped."""
        ...

    def put(self, staged: StagedObject, expected_hash: Multihash) -> None:
        """Make a staged object durable and visible."""
        ...


class Arrivals(ArrivingObjects, Protocol):
    """Objects that one caller brings for one dataset, kept apart from all others until they are accepted (EX-80).

    An object is here if it came in this transfer, or in one of the same caller for the same dataset that broke, or if
    the dataset has it already. That the same bytes lie in the store for another dataset is seen nowhere.
    A context manager: leaving it keeps what arrived for some days (HOME-19).
    """

    def get_path(self, object_hash: Multihash) -> Path:
        """Return a local file with the object's bytes, until ``drop``; errors as ``ObjectStore.get_path``."""
        ...

    def count_arrived(self, object_hash: Multihash) -> int:
        """Return how many bytes of an object are here, of a part too."""
        ...

    def keep(self, hashes: Iterable[Multihash]) -> None:
        """Make these durable in the store, for the commit that follows; the caller holds a writing lease.

        Raises:
            ObjectNotFoundError: One is not here.
            HomeFullError, HomeReadOnlyError: They cannot be stored.
        """
        ...

    def drop(self) -> None:
        """Remove everything that arrived: it was accepted and is in the store, or it was rejected."""
        ...

    def close(self) -> None:
        """Let go of what arrived."""
        ...

    def __enter__(self) -> "Arrivals":
        """Return the value itself."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Close."""
        ...


class StoredObjects(Protocol):
    """Content-addressed files, to be read. Hashes are SHA3-256 multihashes; another code is a ``ValueError``.

    An object is either absent or whole and durable: no reader ever sees a part of one.
    """

    def has(self, object_hash: Multihash) -> bool:
        """Say whether the object is here, whole; its bytes are not read."""
        ...

    def get_size(self, object_hash: Multihash) -> int:
        """Return the object's length in bytes.

        Raises:
            ObjectNotFoundError: It is not here.
        """
        ...

    def get_path(self, object_hash: Multihash) -> Path:
        """Return a local, readable file with the object's bytes, not to be changed.

        Raises:
            ObjectNotFoundError: It is not here.
            HomeCorruptError: What is at its place is no plain file.
        """
        ...

    def open(self, object_hash: Multihash) -> BinaryIO:
        """Open the object for reading; errors as ``get_path``. Stays readable when the object is deleted."""
        ...

    def check(self, object_hash: Multihash) -> None:
        """Read the object and compare its hash with its name.

        Raises:
            ObjectNotFoundError: It is not here.
            ObjectCorruptError: The bytes are others.
        """
        ...

    def iter_hashes(self) -> Iterator[Multihash]:
        """Yield the hashes of all objects, in no order. Files with foreign names are passed over."""
        ...

    def measure(self) -> Room:
        """Count the objects and their bytes; looks at every file, so callers ask seldom."""
        ...


class ObjectStore(StoredObjects, Protocol):
    """The same, to be added to and taken from."""

    def writing(self) -> AbstractContextManager[None]:
        """Hold a writing lease, so that nothing is swept.

        Held from before the first ``stage``, ``resume`` or ``has`` that a commit will rely on until after that commit.
        Leases of any number of threads and processes go together; a lease ends with its process. May wait for a
        running sweep.

        Raises:
            HomeReadOnlyError: Nothing can be written here.
        """
        ...

    def stage(self) -> StagedObject:
        """Begin a new object. The caller holds a writing lease.

        Raises:
            HomeFullError, HomeReadOnlyError: It cannot be stored.
        """
        ...

    def stage_copy(self, path: Path) -> StagedObject:
        """Begin a new object with the bytes of a plain file made elsewhere (an engine's output), read once.

        Raises:
            MalformedError: ``path`` is a link or no plain file; it comes from code that is not trusted.
            HomeFullError, HomeReadOnlyError: It cannot be stored.
        """
        ...

    def resume(self, object_hash: Multihash) -> StagedObject:
        """Continue the download of an object where an earlier attempt of any process stopped.

        The bytes kept are not trusted: only ``put`` decides. When another process is downloading the same object, or
        nothing was kept, the result starts at position 0. Leaving the staged object without ``put`` keeps its bytes.
        """
        ...

    def arrivals(self, dataset_id: DatasetId, brought_by: str, *, already: Callable[[Multihash], bool]) -> Arrivals:
        """Open what ``brought_by`` brings for a dataset; nobody else sees it. The caller holds a writing lease.

        ``already`` says which objects the dataset has (``MetadataStore.has_dataset_object``).
        """
        ...

    def put(self, staged: StagedObject, expected_hash: Multihash) -> None:
        """Make a staged object durable and visible; putting an object that is here already replaces it by its equal.

        Raises:
            ObjectMismatchError: The bytes have another hash; the staged file is gone and nothing else changed.
            HomeFullError, HomeReadOnlyError: It cannot be stored; nothing changed.
        """
        ...

    def delete(self, object_hash: Multihash) -> None:
        """Remove an object; removing an absent one is no error. Only for objects that no committed row names."""
        ...

    def delete_later(self, hashes: Iterable[Multihash]) -> None:
        """Note objects that may be superseded (HOME-20).

        The caller holds a writing lease, and calls ``delete_unnamed`` after it.

        If it is killed before that, or others are writing then, a later ``delete_unnamed`` or sweep removes them.
        """
        ...

    def delete_unnamed(self, is_named: Callable[[Multihash], bool]) -> bool:
        """Remove noted objects that no committed row names, without looking at any other.

        Returns:
            Whether it could; False while anybody holds a writing lease.
        """
        ...


class ObjectUpkeep(ObjectStore, Protocol):
    """The same, to be repaired and swept."""

    def set_aside(self, object_hash: Multihash) -> None:
        """Take bytes that are not what their name says out of the way; absent ones are no error."""
        ...

    def take_back(self, object_hash: Multihash) -> None:
        """End ``set_aside``: where the object has not come again, what was there before is there again."""
        ...

    def has_leftovers(self, *, now: Timestamp) -> bool:
        """Say whether a sweep may find something; cheap.

        So it is while a writer is at work or where one ended without finishing, and when the time of downloads
        is over.
        """
        ...

    def sweep(
        self,
        find_referenced: Callable[[], Iterable[Multihash]],
        *,
        now: Timestamp,
        keep_arrived: bool = True,
        dry_run: bool = False,
    ) -> SweepReport:
        """Remove objects that nothing refers to and staged files that crashes left.

        Does nothing while anybody holds a writing lease. ``find_referenced`` is called once, when no writer can be
        running. What arrived in transfers that stopped is kept for some days, counted back from ``now``; not where
        ``keep_arrived`` is False. A dry run removes nothing and reports what would be.

        Raises:
            HomeReadOnlyError: Nothing can be removed here.
        """
        ...
