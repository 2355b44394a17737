"""Recovery keys in files of their own: readable by nobody else, never inside the node's home (KEY-18).

A key has to be in its file before the log names it, so a command that is ended between the two leaves a file that no
log names. Such a file is never removed: where a write of the log failed, only the next reader learns whether it is
true. Instead this machine remembers, beside the marks of KEY-19, which key it wrote where, until the command has ended.
The same command takes that file up again. A file that somebody else laid there is not taken: he would have the key.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_node.adapters.key_files import (
    MAX_FILE_BYTES,
    decode_pem,
    encode_pem,
    find_memory_file,
    read_private,
    replace_memory,
    write_private,
)
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder, fsync_folder
from odf_node.ports.keys import PrivateKey
from odf_node.records.errors import HomeCorruptError, HomeReadOnlyError, mapped_os_errors
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError, OdfError

_ENDING: Final = ".recovery"


@dataclass(frozen=True, slots=True)
class UnfinishedKey:
    """A recovery key whose command has not ended, and where it was written."""

    key: DidKey
    file: str


def keep_recovery_key(
    home: HomeFolder, path: Path, dataset_id: DatasetId, *, generate: Callable[[], PrivateKey]
) -> PrivateKey:
    """Make a recovery key that is durable in a file when this returns, or take up the one that is.

    Args:
        home: Where it must not lie.
        path: Of the file.
        dataset_id: What the key shall take back.
        generate: Makes a key.

    Raises:
        UsageError: The file exists and is none that such a command left, its folder does not, or it is in the home.
        HomeFullError, HomeReadOnlyError: It cannot be written.
    """
    _require_outside(home, path)
    with mapped_os_errors(path):
        if _is_empty_rest(path, dataset_id):
            path.unlink()
        elif os.path.lexists(path):
            return _take_up(path, dataset_id)
        if not path.parent.is_dir():
            raise UsageError(f"{path.parent}: there is no such folder")
        key = generate()
        # A machine that has no memory still makes keys; where there is no room, nothing has been done yet.
        with suppress(HomeReadOnlyError):
            _note(dataset_id, UnfinishedKey(DidKey(key.public_key()), str(path.absolute())))
        try:
            write_private(path, encode_pem(key))
        except FileExistsError:
            raise _taken(path) from None
        fsync_folder(path.parent)
    return key


def find_unfinished_key(dataset_id: DatasetId) -> UnfinishedKey | None:
    """Return the recovery key of a command that was ended before it was done, or None."""
    path = find_memory_file(dataset_id, _ENDING)
    if path is None:
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
        return UnfinishedKey(DidKey.parse(found["key"]), str(found["file"]))
    except (OSError, ValueError, TypeError, KeyError, OdfError):
        return None


def forget_unfinished_key(dataset_id: DatasetId, key: PrivateKey) -> None:
    """Note that a command has ended, and the file of its key is as any other from now on; failing to is no error."""
    path, found = find_memory_file(dataset_id, _ENDING), find_unfinished_key(dataset_id)
    if path is not None and found is not None and found.key == DidKey(key.public_key()):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def read_recovery_key(path: Path) -> PrivateKey:
    """Read a key that was kept offline.

    Raises:
        UsageError: There is no such file.
        UnsafeKeyFileError: Others than the owner can read or change it.
        MalformedError: It is something else.
    """
    with mapped_os_errors(path):
        try:
            data = read_private(path, MAX_FILE_BYTES)
        except FileNotFoundError:
            raise UsageError(f"{path}: there is no such file") from None
    try:
        return decode_pem(data, path)
    except HomeCorruptError as error:
        raise MalformedError("recovery key", where=str(path), expected="an Ed25519 private key in PEM") from error


def _is_empty_rest(path: Path, dataset_id: DatasetId) -> bool:
    """Say whether a command was killed between making the file and writing the key, which no log names then."""
    unfinished = find_unfinished_key(dataset_id)
    if unfinished is None or unfinished.file != str(path.absolute()) or path.is_symlink():
        return False
    return path.is_file() and path.stat().st_size == 0


def _take_up(path: Path, dataset_id: DatasetId) -> PrivateKey:
    unfinished = find_unfinished_key(dataset_id)
    try:
        key = read_recovery_key(path)
    except OdfError:
        raise _taken(path) from None
    if unfinished is None or unfinished.key != DidKey(key.public_key()):
        raise _taken(path)
    # The same bytes: what failed to reach the disk once is written to it by a later fsync only if it is written again.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "wb") as file:
        file.write(encode_pem(key))
        file.flush()
        os.fsync(file.fileno())
    fsync_folder(path.parent)
    return key


def _taken(path: Path) -> UsageError:
    return UsageError(f"{path}: exists already; a key is never overwritten, name a new file")


def _note(dataset_id: DatasetId, unfinished: UnfinishedKey) -> None:
    path = find_memory_file(dataset_id, _ENDING)
    if path is not None:
        with mapped_os_errors(path):
            replace_memory(path, json.dumps({"key": str(unfinished.key), "file": unfinished.file}))


def _require_outside(home: HomeFolder, path: Path) -> None:
    if home.contains(path):
        raise UsageError(f"{path} is in the node's own folder: a thief of that folder has the recovery key as well")
