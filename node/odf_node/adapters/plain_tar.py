"""Tar files of others, whose headers lie: read as they lie there, with bounds on what a header costs.

Clauses: LAYOUT-6 in ``spec/extensions/layout.md``, HOME-43 in ``spec/home.md``.
"""

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_MAX_HEADER_BYTES: Final = 1024 * 1024  # guess: a name of some thousand characters, a few times


class _Headers(io.BufferedReader):
    """A tar file of which no more is read at once than a header may have; the content of members is passed over."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {size} bytes, more than {_MAX_HEADER_BYTES}")
        return super().read(size)


@contextmanager
def opened_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar file without compression, so that what is written is no more than what lies there.

    Raises:
        OSError: It cannot be read.
        tarfile.TarError, ValueError, RecursionError: It is none; also later, with the next member.
    """
    with _Headers(path.open("rb", buffering=0)) as file, tarfile.open(fileobj=file, mode="r:") as archive:
        yield archive


def iter_members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Iterate over the headers, and keep none of them; content is read before the next one."""
    for member in archive:
        if member.size < 0:  # the next header would be one that was read before
            raise tarfile.ReadError(f"{member.name[:80]!r} has {member.size} bytes")
        yield member
        archive.members = []  # type: ignore[attr-defined]  # it would keep every header for ever


def is_plain(member: tarfile.TarInfo) -> bool:
    """Say whether a member is a file, all of whose bytes lie in the archive: one with holes has any size."""
    return member.isreg() and not member.issparse()
