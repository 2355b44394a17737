"""The files of this program as they are now, to tell a process that was started before they changed."""

import hashlib
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from odf_engines.registry import list_packages

_CORE: Final = ("odf_engines", "odf_node", "odf_protocol")


def build_of_program() -> str:
    """Name the program's files: paths, sizes and times, hashed."""
    digest = hashlib.sha256()
    for folder in _folders():
        for path, size_bytes, changed_ns in sorted(_iter_files(folder)):
            digest.update(f"{path}\0{size_bytes}\0{changed_ns}\0".encode())
    return digest.hexdigest()


def _folders() -> Iterator[str]:
    for package in sorted({*_CORE, *list_packages()}):
        found = find_spec(package)
        assert found is not None
        assert found.origin is not None
        yield str(Path(found.origin).parent)


def _iter_files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _iter_files(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
