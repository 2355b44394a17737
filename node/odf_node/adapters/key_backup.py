"""Private keys of a home in one file of their own, and back (HOME-42, HOME-44)."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from odf_node.adapters.key_files import decode_pem, put_key_file
from odf_node.adapters.plain_tar import is_plain, iter_members, opened_tar
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import mapped_os_errors
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError

_NODE_KEY: Final = "node.pem"
_MAX_KEY_BYTES: Final = 64 * 1024


def back_up_keys(home: HomeFolder, target: Path) -> int:
    """Write all private keys into one tar file that only this user can read; return how many.

    Raises:
        UsageError: The file exists: keys are never overwritten.
    """
    with mapped_os_errors(target):
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            raise UsageError(f"{target}: exists already; name a new file for the keys") from None
        count = 0
        try:
            with os.fdopen(descriptor, "wb") as file:
                with tarfile.open(fileobj=file, mode="w") as archive:
                    for path in sorted(home.keys.rglob("*.pem")):
                        archive.add(path, str(path.relative_to(home.keys)), recursive=False)
                        count += 1
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            target.unlink(missing_ok=True)  # half of the keys would be taken for all of them
            raise
    return count


def restore_keys(home: HomeFolder, source: Path) -> int:
    """Put the keys of such a file into the home; one that is there stays as it is. Returns how many were put.

    Raises:
        MalformedError: The file is none of ours.
    """
    home.create()
    with mapped_os_errors(home.keys):
        return sum(put_key_file(home, home.keys / name, content) for name, content in _iter_keys(source))


def find_node_key(source: Path) -> DidKey | None:
    """Return whose node key is in such a file; None where none is.

    Raises:
        MalformedError: The file is none of ours.
    """
    with mapped_os_errors(source):
        for name, content in _iter_keys(source):
            if name == Path(_NODE_KEY):
                return DidKey(decode_pem(content, source).public_key())
    return None


def _iter_keys(source: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the place of each key in a home, and its file."""
    try:
        with opened_tar(source) as archive:
            for member in iter_members(archive):
                parts = Path(member.name).parts
                is_ours = parts == (_NODE_KEY,) or (len(parts) == 2 and parts[0] == "datasets")
                if not (is_plain(member) and is_ours and parts[-1].endswith(".pem") and member.size <= _MAX_KEY_BYTES):
                    raise MalformedError("file of keys", where=member.name, expected="keys", found="something else")
                stream = archive.extractfile(member)
                if stream is not None:
                    yield Path(*parts), stream.read(_MAX_KEY_BYTES)
    except (tarfile.TarError, ValueError, RecursionError) as error:
        raise MalformedError("file of keys", where=str(source), expected="a tar file", found=str(error)) from error
