"""What was pushed waits in a file that nobody else sees, until all of it is here; gone with the process."""

import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_LENGTH: Final = struct.Struct("<I")


class Spool:
    """Byte strings in the order in which they came. A context manager, for one thread at a time."""

    def __init__(self, folder: Path | None) -> None:
        """Open an empty one; ``folder`` is on the disk where it is to be, None: the system's temporary one."""
        # Its position is at its end but for the moment of a read.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it is the context manager

    @property
    def size_bytes(self) -> int:
        """What it takes on the disk."""
        return self._file.tell()

    def append(self, entry: bytes) -> None:
        """Put bytes behind the others."""
        self._file.write(_LENGTH.pack(len(entry)) + entry)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the entries that are here now; others may be appended meanwhile."""
        position, end = 0, self._file.tell()
        while position < end:
            self._file.seek(position)
            (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
            entry = self._file.read(length)
            position = self._file.tell()
            self._file.seek(0, os.SEEK_END)
            yield entry

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()
