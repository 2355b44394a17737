"""The only folders whose files a caller can name.

A caller shares folders with the server, usually mounts of one container. A path in a request is a stranger's text: it
counts after all links in it were followed, and only if it then lies in such a folder.

Source: clause GRPC-5 of ``spec/plug-ins/engine-grpc.md``.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from odf_protocol.errors import OdfError, shown

_MAX_PATH_CHARACTERS = 4096  # PATH_MAX of Linux


class ForbiddenPathError(OdfError):
    """A request names a path that it must not, or that is not what it must be.

    Attributes:
        path: As the request has it.
        reason: What is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"path {shown(path)}: {reason}")


class SharedFolders:
    """Folders of inputs, and folders for outputs.

    Args:
        readable: Files below may be read; those of ``writable`` too.
        writable: Files may be made below.
    """

    def __init__(self, readable: Iterable[Path], writable: Iterable[Path]) -> None:
        self._writable = tuple(writable)
        self._readable = (*readable, *self._writable)

    def get_input(self, text: str) -> Path:
        """Return the plain file that a request means.

        Raises:
            ForbiddenPathError: Elsewhere, absent, or no plain file.
        """
        found = _resolved(text)
        # Elsewhere first, so that nobody can ask what exists there.
        if not _is_inside(found, self._readable):
            raise ForbiddenPathError(text, "not in a folder of inputs")
        if not found.is_file():
            raise ForbiddenPathError(text, "there is no such plain file")
        return found

    def get_output(self, text: str) -> Path:
        """Return the path of a file that a request wants to be made.

        Raises:
            ForbiddenPathError: Elsewhere, or there already.
        """
        path = Path(text)
        folder = _resolved(text, of_parent=True)
        if not _is_inside(folder, self._writable):
            raise ForbiddenPathError(text, "not in a folder for outputs")
        if not folder.is_dir():
            raise ForbiddenPathError(text, "there is no such folder")
        if os.path.lexists(folder / path.name):
            raise ForbiddenPathError(text, "there is a file already")
        return folder / path.name


def hand_over(source: Path, target: Path) -> None:
    """Put a result where the caller wants it; a file that is not whole does not stay.

    Raises:
        OSError: It appeared meanwhile, or the disk is full.
    """
    with target.open("xb") as file:
        try:
            with source.open("rb") as rows:
                shutil.copyfileobj(rows, file, 1024 * 1024)
        except BaseException:
            with contextlib.suppress(OSError):
                target.unlink()
            raise


def _resolved(text: str, *, of_parent: bool = False) -> Path:
    """Follow all links of a path, or of the folder that it is in."""
    if len(text) > _MAX_PATH_CHARACTERS or "\0" in text:
        raise ForbiddenPathError(text, "not a path")
    path = Path(text)
    if not path.is_absolute() or ".." in path.parts or not path.name:
        raise ForbiddenPathError(text, "not an absolute path without '..'")
    try:
        return (path.parent if of_parent else path).resolve()
    except (OSError, RuntimeError) as error:
        raise ForbiddenPathError(text, "its links lead nowhere") from error


def _is_inside(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder.resolve()) for folder in folders)
