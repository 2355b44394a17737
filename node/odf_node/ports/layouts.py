"""Places that hold a dataset as files in ODF's repository layout: folders, archives, buckets (LAYOUT-1 to LAYOUT-6).

Paths are made of our words and parsed hashes, never of text from whoever filled the place.
"""

from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol, Self

from odf_protocol.multihash import Multihash

HEAD_PATH: Final = "refs/head"
KEY_LOG_PATH: Final = "key-log"
"""The log of the dataset's keys, whole (LAYOUT-8)."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file open for reading from its beginning, and how long it is; the reader closes it."""

    file: BinaryIO
    size_bytes: int


class LayoutSource(Protocol):
    """One dataset's files, to be read by any number of threads at once.

    Methods raise ``PeerNotFoundError`` where there is no such file, ``PeerForbidsError`` where it may not be read,
    ``PeerUnavailableError`` where the place does not answer, MalformedError where it is no plain file.
    """

    @property
    def url(self) -> str:
        """Where it is, for records and messages."""
        ...

    @property
    def name(self) -> str:
        """What the dataset is called there."""
        ...

    def open(self, path: str, what: str) -> OpenedFile:
        """Open a file below the dataset; ``what`` says what it is, for messages."""
        ...


class LayoutTarget(LayoutSource, Protocol):
    """One dataset's files, to be read and written; a context manager that finishes or undoes on leaving.

    Beside the errors of a source, writing raises ``PeerUnavailableError`` where there is no room, too.
    """

    def find_size(self, path: str) -> int | None:
        """Return a file's size in bytes, None where there is none."""
        ...

    def write(self, path: str, content: BinaryIO, size_bytes: int) -> None:
        """Make or replace a file: readers see all of it or nothing of it."""
        ...

    def settle(self) -> None:
        """Make everything written so far durable: called before the head, which makes it count."""
        ...

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object, /) -> None:
        """Finish; after an error, leave what was there before, or what a next attempt can go on with."""
        ...


def signature_path(block_hash: Multihash) -> str:
    """The detached signature of a block (LAYOUT-3)."""
    return f"signatures/{block_hash}"


def step_record_path(block_hash: Multihash) -> str:
    """The step record of a block (LAYOUT-3)."""
    return f"replay-records/{block_hash}"


def signed_head_path(block_hash: Multihash) -> str:
    """The document in which the dataset's key vouches for a block as the head (LAYOUT-3)."""
    return f"signed-heads/{block_hash}"
