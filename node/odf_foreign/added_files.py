"""What folders of things that the operator added have in common: one who adds at a time, copies, durable files.

What is made there has a name that begins with a dot until it is whole.

Source: clause HOME-50 in ``spec/home.md``.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odf_engines.sandbox.disk import remove_tree
from odf_node.home_folder import fsync_folder
from odf_node.records.errors import mapped_os_errors
from odf_protocol.errors import MalformedError

_COPY_BYTES: Final = 1024 * 1024


@contextmanager
def held_alone(folder: Path, lock_name: str) -> Iterator[None]:
    """Wait until nobody else adds or removes, and clear what such a one left when it was killed."""
    with mapped_os_errors(folder):
        lock = os.open(folder / lock_name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(".*"):
            remove_tree(left)
        yield
    finally:
        os.close(lock)


def copy_bounded(file: Path, target: Path, max_bytes: int, what: str) -> None:
    """Copy a file, so that what is checked is what is kept.

    Raises:
        MalformedError: It has more bytes.
    """
    left = max_bytes
    with file.open("rb") as given, target.open("xb") as kept:
        while part := given.read(_COPY_BYTES):
            if (left := left - len(part)) < 0:
                raise MalformedError(what, expected=f"a file of at most {max_bytes} bytes", found="more")
            kept.write(part)


def make_durable(folder: Path, names: Iterable[str]) -> None:
    """Bring files of a folder, and the folder, to the disk."""
    for name in names:
        descriptor = os.open(folder / name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    fsync_folder(folder)
