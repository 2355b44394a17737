"""Recovery keys in files of their own: written once, readable by nobody else, never inside the node's home (KEY-18)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from odf_node.adapters.key_files import MAX_FILE_BYTES, decode_pem, encode_pem, read_private, write_private
from odf_node.errors import UsageError
from odf_node.home import Home, fsync_folder
from odf_node.ports.errors import HomeCorruptError, mapped_os_errors
from odf_node.ports.keys import PrivateKey
from odf_protocol.errors import MalformedError


@contextmanager
def written_recovery_key(home: Home, path: Path, key: PrivateKey, *, is_named: Callable[[], bool]) -> Iterator[None]:
    """Write a key; it is durable inside the block, and removed again where the block fails before the key is named.

    Args:
        home: Where it must not lie.
        path: Of the file.
        key: To be kept offline.
        is_named: Says whether the log of keys names it by now: a block may fail, or be ended, behind its commit.

    Raises:
        UsageError: The file exists, its folder does not, or it would lie in the home.
    """
    _require_outside(home, path)
    with mapped_os_errors(path):
        try:
            write_private(path, encode_pem(key))
        except FileExistsError:
            raise UsageError(f"{path}: exists already; a key is never overwritten, name a new file") from None
        except FileNotFoundError:
            raise UsageError(f"{path.parent}: there is no such folder") from None
        fsync_folder(path.parent)
    try:
        yield
    except BaseException:
        # Whoever cannot read the log keeps the file: a key that nothing names opens nothing, one that is lost is lost.
        with suppress(Exception):
            if not is_named():
                path.unlink(missing_ok=True)
        raise


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


def _require_outside(home: Home, path: Path) -> None:
    if path.absolute().resolve().is_relative_to(home.path.absolute().resolve()):
        raise UsageError(f"{path} is in the node's own folder: whoever steals that has the recovery key as well")
