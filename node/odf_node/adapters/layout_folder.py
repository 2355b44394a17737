"""A dataset in ODF's repository layout in a local or mounted folder: ``refs/ blocks/ data/ checkpoints/``."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, Self

from odf_node.home_folder import fsync_folder
from odf_node.ports.layouts import OpenedFile
from odf_node.ports.peer_errors import PeerUnavailableError, PlaceNotFoundError
from odf_protocol.errors import MalformedError

_PLAIN: Final = "a plain file in the dataset's folder"
_PENDING_PREFIX: Final = ".pending-"
"""Files on their way; readers of the layout pass over such names (ODF reference implementation)."""


class LayoutFolder:
    """``LayoutTarget`` on one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed: set[Path] = set()

    @property
    def url(self) -> str:
        return self._folder.absolute().as_uri()

    @property
    def name(self) -> str:
        return self._folder.absolute().name

    def open(self, path: str, what: str) -> OpenedFile:
        whole = self._folder / path
        try:
            # Non-blocking: a pipe in our way must not wait for a writer.
            descriptor = os.open(whole, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            if self._folder.is_dir() and (found := self._find_obstacle(path)) is not None:
                raise MalformedError(what, where=str(found), expected=_PLAIN, found="something else") from None
            if not self._folder.exists():
                reason = "there is no such file or folder"
            else:
                reason = f"no such {what} is there: it has no file {path}"
            raise PlaceNotFoundError(str(self._folder), what, reason) from None
        except OSError as error:
            raise PeerUnavailableError(str(whole), error.strerror or str(error), "check the folder") from error
        status = os.fstat(descriptor)
        if not (stat.S_ISREG(status.st_mode) and self._holds(descriptor)):
            os.close(descriptor)
            raise MalformedError(what, where=str(whole), expected=_PLAIN, found="something else")
        return OpenedFile(os.fdopen(descriptor, "rb"), status.st_size)

    def _holds(self, descriptor: int) -> bool:
        """Say whether an open file lies in this folder, wherever links led on the way to it."""
        # The kernel's own word about what was opened: names may be changed meanwhile.
        return Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(self._folder.resolve())

    def _find_obstacle(self, path: str) -> Path | None:
        """Return what stands in the way to a file that cannot be found and is no folder; None: it is just not there."""
        places = [self._folder / path, *(self._folder / path).parents]
        for place in reversed(places[: places.index(self._folder)]):
            if not place.is_dir() and os.path.lexists(place):
                return place
        return None

    def find_size(self, path: str) -> int | None:
        try:
            status = (self._folder / path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def write(self, path: str, content: BinaryIO, size_bytes: int) -> None:  # noqa: ARG002 - the port's signature
        place = self._folder / path
        pending = place.with_name(f"{_PENDING_PREFIX}{secrets.token_hex(8)}")
        with self._mapped_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                with pending.open("xb") as file:
                    shutil.copyfileobj(content, file, 1024 * 1024)
                    file.flush()
                    os.fsync(file.fileno())
                pending.rename(place)
            except BaseException:
                with suppress(OSError):
                    pending.unlink(missing_ok=True)
                raise
        self._changed.add(place.parent)

    def settle(self) -> None:
        with self._mapped_errors(self._folder):
            for folder in (*sorted(self._changed), self._folder):
                if folder.is_dir():
                    fsync_folder(folder)
        self._changed.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """See ``LayoutTarget``; what was written before an error stays, and counts for nothing without the head."""
        if error is None:
            self.settle()

    @contextmanager
    def _mapped_errors(self, place: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PeerUnavailableError(str(place), error.strerror or str(error), "check the folder") from error
