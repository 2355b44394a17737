"""The node's home: where it is and how it is laid out.

A home is made by the first write; reading one that does not exist finds nothing and makes nothing (HOME-1).

Source: clauses HOME-1 to HOME-4 in ``spec/home.md``.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_node.records.errors import HomeCorruptError, mapped_os_errors
from odf_node.sink_notes import forget_notes
from odf_protocol.did import DatasetId

HOME_VARIABLE: Final = "ODF_NODE_HOME"

QUEUE_PREFIX: Final = "queue-"
"""Begins the names of files in staging by which writers of one dataset wait for each other."""

_DATABASE: Final = "odf-node.sqlite"
# SQLite keeps its log and its index beside the database under these names.
_TOP_LEVEL_NAMES: Final = frozenset(
    {
        _DATABASE,
        f"{_DATABASE}-wal",
        f"{_DATABASE}-shm",
        "objects",
        "keys",
        "messages",
        "staging",
        "cache",
        "rows",
        "sinks",
        "consumers",
        "writers.lock",
        "daemon.lock",
        "odf-node.toml",
        "engines",
        "images",
        "policies.yaml",
        "logins.json",
        "questions",
        "audit",
        "contracts",
    }
)
_PRIVATE_FOLDER: Final = 0o700


def find_default_home(environment: Mapping[str, str]) -> Path:
    """Give the home that is used when the command line names none.

    ``$ODF_NODE_HOME``, else ``odf-node`` in ``$XDG_DATA_HOME``, else in ``~/.local/share``. Relative paths in
    ``XDG_DATA_HOME`` are passed over. Source: XDG Base Directory Specification.
    """
    if named := environment.get(HOME_VARIABLE):
        return Path(named).expanduser()
    data_folder = environment.get("XDG_DATA_HOME", "")
    if Path(data_folder).is_absolute():
        return Path(data_folder) / "odf-node"
    return Path.home() / ".local" / "share" / "odf-node"


@dataclass(frozen=True, slots=True)
class HomeFolder:
    """The places in one home folder. Making the value touches nothing."""

    path: Path

    @property
    def database(self) -> Path:
        """Blocks, heads and everything known about datasets."""
        return self.path / _DATABASE

    @property
    def objects(self) -> Path:
        """Content-addressed files: ``objects/<2 hex of the digest>/<base16 multihash>``."""
        return self.path / "objects"

    def contains(self, path: Path) -> bool:
        """Whether a path leads into this folder, links followed; it need not exist."""
        return path.absolute().resolve().is_relative_to(self.path.absolute().resolve())

    @property
    def keys(self) -> Path:
        """Private keys: ``keys/node.pem`` and ``keys/datasets/<base16 of a public key>.pem``, first and later ones."""
        return self.path / "keys"

    @property
    def staging(self) -> Path:
        """Files that nothing refers to yet; whatever is here while nobody writes is rubbish."""
        return self.path / "staging"

    @property
    def messages(self) -> Path:
        """Messages of brokers that no block has yet: a folder for each dataset (ING-33)."""
        return self.path / "messages"

    @property
    def downloads(self) -> Path:
        """What arrives in transfers, and stays when they stop: a folder for each (HOME-19)."""
        return self.staging / "downloads"

    @property
    def refused(self) -> Path:
        """Evidence of rejections: ``staging/refused/<id>/``. In staging: it is no part of what the node holds."""
        return self.staging / "refused"

    @property
    def cache(self) -> Path:
        """What can be made again at any time; users may delete it."""
        return self.path / "cache"

    @property
    def rows(self) -> Path:
        """Rows for engines, which can be made again at any time: ``rows/<2 hex of the digest>/``."""
        return self.path / "rows"

    @property
    def sinks(self) -> Path:
        """What sinks of manifests write: ``sinks/<identity>/`` (SINK-2)."""
        return self.path / "sinks"

    @property
    def consumers(self) -> Path:
        """How far consumers of changes are: ``consumers/<identity>/`` (TABLE-12)."""
        return self.path / "consumers"

    @property
    def policies(self) -> Path:
        """What the operator accepts on what proof; written by people, never by the node."""
        return self.path / "policies.yaml"

    @property
    def logins(self) -> Path:
        """Access tokens for other servers, by origin."""
        return self.path / "logins.json"

    @property
    def query_history(self) -> Path:
        """What was typed into the shell of ``sql`` (HOME-54)."""
        return self.path / "questions"

    @property
    def audit(self) -> Path:
        """What was moved out of the audit log (AUDIT-9)."""
        return self.path / "audit"

    @property
    def writers_lock(self) -> Path:
        """Locked shared by every writer, exclusively by a sweep (HOME-9)."""
        return self.path / "writers.lock"

    @property
    def daemon_lock(self) -> Path:
        """Locked by the one daemon of the home (DAEMON-22)."""
        return self.path / "daemon.lock"

    @property
    def engines(self) -> Path:
        """Workspaces of engines: ``staging/engines``."""
        return self.staging / "engines"

    @property
    def added_engines(self) -> Path:
        """Engines that the operator added: ``engines/<name>``."""
        return self.path / "engines"

    @property
    def images(self) -> Path:
        """Container images that the operator added, for sources."""
        return self.path / "images"

    def exists(self) -> bool:
        """Say whether anything was ever written here."""
        return self.database.exists()

    def create(self) -> None:
        """Make the folders that are missing; a home that is there is left as it is.

        Raises:
            HomeCorruptError: The path is no folder, or a folder that is used for something else.
            HomeFullError, HomeReadOnlyError: It cannot be made.
        """
        with mapped_os_errors(self.path):
            self._reject_other_use()
            self.path.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            for folder in (self.objects, self.keys, self.staging, self.cache, self.downloads):
                if not folder.is_dir():
                    folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)

    def make_durable(self) -> None:
        """Make the names of the home and of its folders survive a power cut: once, when the database appears."""
        fsync_folder(self.path)
        for folder in self.path.parents:
            # Those above may be closed to this user, and then they are not ours to make durable.
            with suppress(OSError):
                fsync_folder(folder)

    def find_other_use(self) -> str | None:
        """Say what the path is used for if that is not a node; None where it is one, or could become one.

        A mistyped ``--home`` must not scatter a node's files over somebody's documents.

        Raises:
            OSError: The folder cannot be looked at.
        """
        standing = next((folder for folder in (self.path, *self.path.parents) if folder.exists()), self.path)
        if standing.exists() and not standing.is_dir():
            return (
                f"expected a folder to keep this node in, found a file{'' if standing == self.path else f' {standing}'}"
            )
        if not self.path.exists() or self.database.exists():
            return None
        foreign = sorted(entry.name for entry in self.path.iterdir() if entry.name not in _TOP_LEVEL_NAMES)
        if not foreign:
            return None
        return f"expected a home of odf-node or an empty folder, found {foreign[0]!r}; name another --home"

    def _reject_other_use(self) -> None:
        other_use = self.find_other_use()
        if other_use is not None:
            raise HomeCorruptError(self.path, other_use)


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def name_session(dataset_id: DatasetId) -> str:
    """Name a dataset to brokers, in the 23 letters and digits that all of them take (MQTT 3.1.1 section 3.1.3.1)."""
    return f"odf{hashlib.sha3_256(str(dataset_id).encode()).hexdigest()[:20]}"


def name_sinks(dataset_id: DatasetId) -> str:
    """Name the folder of what a dataset's sinks write: its identity without ``did:odf:``."""
    return str(dataset_id).rpartition(":")[2]


def sweep_dataset_folders(home: HomeFolder, list_ids: Callable[[], Iterable[DatasetId]]) -> None:
    """Remove messages that wait for datasets that are gone, what their sinks wrote, and what was noted of all these.

    Args:
        home: Has the folders.
        list_ids: Gives the datasets that there are; asked after the folders, as new ones come first.
    """
    forget_notes(home.cache, lambda: {str(each) for each in list_ids()})
    found = [*home.messages.glob("odf*"), *home.sinks.glob("fed01*"), *home.consumers.glob("fed01*")]
    if not found:
        return
    kept = {name(each) for each in list_ids() for name in (name_session, name_sinks)}
    for folder in found:
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
