"""Errors of the node's stores.

::

    OdfError
    ├── NotFoundError
    │   ├── DatasetNotFoundError     no such dataset here
    │   ├── BlockNotFoundError       no such block in the dataset
    │   ├── ObjectNotFoundError      no such object here
    │   └── KeyNotFoundError         the private key is not held here
    ├── RejectedError
    │   ├── NameTakenError           another dataset has the name
    │   ├── ObjectMismatchError      bytes do not have the hash that was promised
    │   └── PeerKeyChangedError      a peer shows another identity than the one seen first
    ├── UnavailableError
    │   ├── HeadMovedError           somebody committed first: read again, and try again
    │   ├── KeyLogMovedError         the dataset's key changed meanwhile: read again, and try again
    │   ├── HomeBusyError            another process holds the home for too long
    │   ├── HomeServedError          another daemon serves the home
    │   ├── HomeFullError            no room on the disk
    │   └── HomeReadOnlyError        the home cannot be written
    ├── CorruptError
    │   ├── HomeCorruptError         the home is damaged: stop and tell the operator
    │   ├── ObjectCorruptError       an object's bytes changed on our disk
    │   └── UnsafeKeyFileError       others can read a private key
    └── UnsupportedError
        └── HomeVersionError         the home was written by another build of the program
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import CorruptError, NotFoundError, RejectedError, UnavailableError, UnsupportedError
from odf_protocol.multihash import Multihash


class DatasetNotFoundError(NotFoundError):
    """No dataset with this identity or name is here."""

    def __init__(self, dataset: DatasetId | str) -> None:
        super().__init__(f"there is no dataset {dataset} in this node")
        self.dataset = dataset


class BlockNotFoundError(NotFoundError):
    """The dataset has no such block."""

    def __init__(self, dataset_id: DatasetId, block: Multihash | int) -> None:
        super().__init__(f"dataset {dataset_id} has no block {block}")
        self.dataset_id = dataset_id
        self.block = block


class ObjectNotFoundError(NotFoundError):
    """No object with this hash is here."""

    def __init__(self, object_hash: Multihash) -> None:
        super().__init__(f"object {object_hash} is not in this node")
        self.object_hash = object_hash


class KeyNotFoundError(NotFoundError):
    """The private key of the dataset is not held here, so this node cannot write to it."""

    def __init__(self, dataset_id: DatasetId) -> None:
        super().__init__(f"this node does not hold the private key of {dataset_id}")
        self.dataset_id = dataset_id


class SigningKeyLostError(NotFoundError):
    """The dataset is this node's own, but the private key that speaks for it now is not in this home."""

    def __init__(self, dataset_id: DatasetId, key: DidKey) -> None:
        super().__init__(
            f"the key that speaks for {dataset_id} now, {key}, is not in this home: was it restored from a backup that "
            "was made before the key changed? Put back a newer backup of the keys, or use the recovery key: "
            "'odf-node key recover'"
        )
        self.dataset_id = dataset_id
        self.key = key


class NameTakenError(RejectedError):
    """Another dataset has the name; ``holder`` says which."""

    def __init__(self, name: str, holder: DatasetId) -> None:
        super().__init__("name-is-unique", found=name)
        self.args = (f"the name '{name}' belongs to dataset {holder}",)
        self.name = name
        self.holder = holder


class ObjectMismatchError(RejectedError):
    """An object's bytes do not have the hash that was promised."""

    def __init__(self, expected: Multihash, found: Multihash, size_bytes: int) -> None:
        super().__init__("physical-hash", expected=expected, found=found)
        self.args = (f"object {expected}: the {size_bytes} bytes received have the hash {found}",)
        self.size_bytes = size_bytes


class PeerKeyChangedError(RejectedError):
    """A peer shows another identity than the one pinned when it was first seen."""

    def __init__(self, url: str, expected: object, found: object) -> None:
        super().__init__("peer-key-is-pinned", expected=expected, found=found)
        self.args = (f"peer {url}: expected the node key {expected}, found {found}",)
        self.url = url


class HeadMovedError(UnavailableError):
    """The chain grew since it was read; nothing was written. Read the new head and decide again."""

    def __init__(self, dataset_id: DatasetId, expected: Multihash | None, found: Multihash | None) -> None:
        super().__init__(f"dataset {dataset_id}: expected the head {expected}, found {found}; another writer was first")
        self.dataset_id = dataset_id
        self.expected = expected
        self.found = found


class VersionMovedError(UnavailableError):
    """A write was to follow one version, and another one is the newest; nothing was written."""

    def __init__(self, dataset: str, expected: int, found: int) -> None:
        super().__init__(f"the newest version of '{dataset}' is {found}, and not {expected}; nothing was written")
        self.expected = expected
        self.found = found


class WritersBusyError(UnavailableError):
    """Other writers of a dataset were faster for longer than this one waits; nothing was written."""

    def __init__(self, dataset: str, waited_s: float) -> None:
        super().__init__(f"others wrote to '{dataset}' for {waited_s:g} s; nothing was written, try again")
        self.waited_s = waited_s


class NameMovedError(UnavailableError):
    """The dataset was renamed since its name was read; nothing was changed."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"'{expected}' was renamed to '{found}' meanwhile; nothing was changed")


class KeyLogMovedError(UnavailableError):
    """The dataset's key log changed since it was read; nothing was written. Read it again and decide again."""

    def __init__(self, dataset_id: DatasetId, expected: int, found: int) -> None:
        super().__init__(f"dataset {dataset_id}: expected {expected} key events, found {found}; its key just changed")
        self.dataset_id = dataset_id
        self.expected = expected
        self.found = found


class HomeBusyError(UnavailableError):
    """Another process kept the home to itself for longer than this one waits."""

    def __init__(self, path: Path, waited_s: float) -> None:
        super().__init__(f"{path}: another process has kept it busy for more than {waited_s:g} s")
        self.path = path
        self.waited_s = waited_s


class HomeServedError(UnavailableError):
    """Another daemon serves the home (DAEMON-22)."""

    def __init__(self, home: Path) -> None:
        super().__init__(f"another 'odf-node serve' runs on the home {home}; end it first, or name another --home")
        self.home = home


class TooManyWaitingError(UnavailableError):
    """What was asked is done once at a time, and as many as may wait for it already do."""

    def __init__(self, max_waiting: int) -> None:
        super().__init__(f"{max_waiting} others wait for the same kind of work; try again")
        self.max_waiting = max_waiting


class HomeFullError(UnavailableError):
    """There is no room (disk, quota or file size limit); nothing was half-written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: cannot write: {reason}")
        self.path = path
        self.reason = reason


class HomeReadOnlyError(UnavailableError):
    """This user cannot write to the home."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: cannot be written: {reason}")
        self.path = path
        self.reason = reason


class HomeCorruptError(CorruptError):
    """Something in the home is not what this program put there."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class ObjectCorruptError(CorruptError):
    """An object's bytes changed on our disk."""

    def __init__(self, path: Path, expected: Multihash, found: Multihash) -> None:
        super().__init__(f"{path}: expected the hash {expected}, found {found}")
        self.path = path
        self.expected = expected
        self.found = found

    def with_remedy(self, dataset: str) -> "ObjectCorruptError":
        """Say how to fix a file of a dataset."""
        self.args = (f"{self.args[0]}; 'odf-node repair {dataset}' brings it again",)
        return self


class UnsafeKeyFileError(CorruptError):
    """A private key could be read or changed by others."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class HomeVersionError(UnsupportedError):
    """Another build of the program wrote the home, with other tables.

    Attributes:
        path: The database, or the backup of one.
        found: Version and tables there.
        supported: Version and tables of this program.
        is_newer: Whether a newer program reads it; else the one that made it has to.
    """

    def __init__(self, path: Path, supported: str, found: str, *, is_newer: bool) -> None:
        super().__init__("home version", found=found, supported=supported)
        remedy = (
            "use a newer odf-node"
            if is_newer
            else "use the odf-node that made it: its 'export' writes the datasets as files, and 'import' takes them "
            "into a new --home (keys: its 'backup --keys', then 'restore --keys')"
        )
        self.args = (f"{path}: expected a home of version {supported}, found version {found}: {remedy}",)
        self.is_newer = is_newer
        self.path = path


_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE})
_NOT_WRITABLE: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@contextmanager
def mapped_os_errors(path: Path) -> Iterator[None]:
    """Raise HomeFullError or HomeReadOnlyError for what the operating system rejects to write below ``path``.

    Other failures pass: they are mistakes of our own code.
    """
    try:
        yield
    except OSError as error:
        where = Path(error.filename) if isinstance(error.filename, str) else path
        reason = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            raise HomeFullError(where, reason) from error
        if error.errno in _NOT_WRITABLE:
            raise HomeReadOnlyError(where, reason) from error
        raise
