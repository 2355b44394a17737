"""Files of rows that this node wrote itself, by the object that has the same rows: what engines read."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from odf_protocol.multihash import Multihash

ROWS: Final = ".parquet"
"""The form in which engines read rows."""


@dataclass(frozen=True, slots=True)
class RowsRoom:
    """How many files of rows there are, and the bytes of those that are not the object itself."""

    files: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The oldest and the newest event time of some rows, in microseconds since 1970; what is finer, outwards."""

    first_us: int
    last_us: int


class RowsCache(Protocol):
    """Files that can be made again at any time. A file is absent or whole: what is damaged counts as absent."""

    def find(self, object_hash: Multihash, form: str = ROWS) -> Path | None:
        """Return the file with the rows of an object, read and found undamaged; it now counts as used.

        ``form`` is how the file's name ends: another one than ``ROWS`` says something else of the rows.
        """
        ...

    def find_event_times(self, object_hash: Multihash, column: str) -> EventTimes | None:
        """Return the event times of the rows of an object that were remembered, whether its file is there or not."""
        ...

    def remember_event_times(self, object_hash: Multihash, column: str, times: EventTimes) -> None:
        """Remember the event times of the rows of an object, for as long as this process runs."""
        ...

    def making(self, object_hash: Multihash, form: str = ROWS) -> AbstractContextManager[BinaryIO]:
        """Write the file for an object: it is there when the block ends, and nothing is when it fails.

        Raises:
            HomeFullError, HomeReadOnlyError: It cannot be written.
        """
        ...

    def adopt(self, object_hash: Multihash, path: Path) -> None:
        """Take a file for the rows of an object that this node's own writer made; no bytes are copied.

        Does nothing where the file system cannot do that, or where there is a file already.
        """
        ...

    def fingerprint_key(self) -> bytes:
        """Return the key of this node for fingerprints of rows, which nobody else knows (ROWS-12)."""
        ...

    def measure(self) -> RowsRoom:
        """Say what is there."""
        ...

    def get_size(self, object_hash: Multihash) -> int:
        """Return the bytes that the file for an object takes; 0 where there is none, or it is the object itself."""
        ...

    def trim(self) -> None:
        """Remove what was used longest ago, where there is more than there may be."""
        ...

    def drop(self, object_hash: Multihash) -> None:
        """Remove the files for an object; an absent one is no error."""
        ...

    def sweep(self, is_held: Callable[[Multihash], bool]) -> RowsRoom:
        """Remove files for objects that are not held; return what was removed."""
        ...

    def clear(self) -> RowsRoom:
        """Remove everything that takes room; return what was removed."""
        ...
