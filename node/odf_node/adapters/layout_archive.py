"""A dataset in ODF's repository layout inside one tar file, below a folder of its name (LAYOUT-6).

Nothing is unpacked: members are found by name and read where they lie, so no name in an archive becomes a path here.
"""

import io
import os
import secrets
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Self, cast

from odf_node.adapters.plain_tar import is_plain, iter_members, opened_tar
from odf_node.ports.layouts import HEAD_PATH, OpenedFile
from odf_node.ports.peer_errors import PeerNotFoundError, PeerUnavailableError, PlaceNotFoundError
from odf_protocol.errors import MalformedError, UnsupportedError

MAX_MEMBERS: Final = 4_000_000  # guess: a million blocks with signature, step record and slice
_FILE_MODE: Final = 0o644


class LayoutArchive:
    """``LayoutSource`` on a tar file without compression."""

    def __init__(self, path: Path) -> None:
        """Read the list of members.

        Raises:
            PeerNotFoundError, PeerUnavailableError: The file cannot be read.
            MalformedError: No tar file, or none with exactly one dataset in it.
        """
        self._path = path
        self._places: dict[str, tuple[int, int]] = {}
        self._others: set[str] = set()
        """Members that are no plain files: links, devices, folders."""
        try:
            with opened_tar(path) as archive:
                for count, member in enumerate(iter_members(archive)):
                    if count >= MAX_MEMBERS:
                        raise UnsupportedError(str(path), found="more", supported=f"{MAX_MEMBERS} files")
                    name = member.name.removeprefix("./")
                    if is_plain(member):
                        self._places[name] = (member.offset_data, member.size)
                    else:
                        self._others.add(name)
        except FileNotFoundError:
            raise PlaceNotFoundError(str(path), "dataset", "there is no such file") from None
        except OSError as error:
            raise PeerUnavailableError(str(path), error.strerror or str(error), "check the file") from error
        except (tarfile.TarError, ValueError, RecursionError) as error:  # one header after another for one member
            raise MalformedError("archive", where=str(path), expected="a tar file", found=str(error)) from error
        heads = [name for name in self._places if f"/{name}".endswith(f"/{HEAD_PATH}")]
        if len(heads) != 1:
            raise MalformedError("archive", where=str(path), expected="one dataset", found=f"{len(heads)}")
        self._folder = heads[0].removesuffix(HEAD_PATH).rstrip("/")

    @property
    def url(self) -> str:
        return self._path.absolute().as_uri()

    @property
    def name(self) -> str:
        return self._folder.rpartition("/")[2] or self._path.name.removesuffix(".tar")

    def open(self, path: str, what: str) -> OpenedFile:
        whole = f"{self._folder}/{path}" if self._folder else path
        found = self._places.get(whole)
        if found is None and whole in self._others:
            raise MalformedError(what, where=f"{self._path}: {whole}", expected="a plain file", found="something else")
        if found is None:
            raise PlaceNotFoundError(str(self._path), what, f"no such {what} is there: it has no file {path}")
        offset, size_bytes = found
        with _mapped_errors(self._path):
            return OpenedFile(cast("BinaryIO", io.BufferedReader(_Part(self._path, offset, size_bytes))), size_bytes)


class LayoutArchiveWriter:
    """``LayoutTarget`` that makes a new tar file, which appears under its name only when it is whole."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._pending = path.with_name(f".pending-{secrets.token_hex(8)}")
        self._archive: tarfile.TarFile | None = None

    @property
    def url(self) -> str:
        return self._path.absolute().as_uri()

    @property
    def name(self) -> str:
        return self._name

    def open(self, path: str, what: str) -> OpenedFile:
        """See ``LayoutSource``; a new archive holds nothing yet."""
        raise PeerNotFoundError(f"{self.url}/{path}", what)

    def find_size(self, path: str) -> int | None:  # noqa: ARG002 - the port's signature
        return None

    def write(self, path: str, content: BinaryIO, size_bytes: int) -> None:
        assert self._archive is not None
        member = tarfile.TarInfo(f"{self._name}/{path}")
        # No times and no owners: equal datasets make equal files.
        member.size, member.mode = size_bytes, _FILE_MODE
        with _mapped_errors(self._path):
            self._archive.addfile(member, content)

    def settle(self) -> None:
        """See ``LayoutTarget``; an archive counts as a whole."""

    def __enter__(self) -> Self:
        with _mapped_errors(self._path):
            self._archive = tarfile.open(self._pending, "x:", format=tarfile.PAX_FORMAT)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Give the finished file its name, or remove it."""
        assert self._archive is not None
        try:
            with _mapped_errors(self._path):
                self._archive.close()
                if error is None:
                    with self._pending.open("rb") as file:
                        os.fsync(file.fileno())
                    self._pending.rename(self._path)
        finally:
            self._pending.unlink(missing_ok=True)


class _Part(io.RawIOBase):
    """A part of a file as a file of its own."""

    def __init__(self, path: Path, offset: int, size_bytes: int) -> None:
        self._file = path.open("rb")
        self._offset, self._size_bytes, self._position = offset, size_bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}[whence]
        self._position = max(0, base + position)
        return self._position

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        left_bytes = max(0, self._size_bytes - self._position)
        chunk = os.pread(self._file.fileno(), min(len(buffer), left_bytes), self._offset + self._position)
        buffer[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def _mapped_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PeerUnavailableError(str(path), error.strerror or str(error), "check the file") from error
