"""How much of a source is taken, and how long it is waited for."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odf_node.byte_rate import ByteRate
from odf_node.ports.sources import SourceTooLargeError
from odf_node.records.errors import mapped_os_errors

GIB: Final = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLimits:
    """Bounds on one source; the operator may change them.

    Sizes are in bytes, also after unpacking. ``unpack_ratio`` counts only above ``unpack_free_bytes``: small files of
    much repetition are harmless.
    """

    size_bytes: int = 16 * GIB  # guess: more in one piece is a case for several files
    connect_s: float = 30.0  # as the reference implementation
    read_s: float = 60.0  # guess: a server that computes its answer
    answer_s: float = 600.0  # guess: a database that sorts a table without an index before its first row
    quiet_s: float = 1.0  # as the reference implementation: a broker that sends nothing for so long has nothing more
    total_s: float = 3600.0  # guess: 16 GiB at 5 MB/s
    redirects: int = 10  # as the reference implementation
    unpack_ratio: int = 200  # guess: text packs 5 to 20 times, deflate ends at 1,032 times
    unpack_free_bytes: int = 64 * 1024**2
    closed: tuple[Path, ...] = (Path("/proc"),)
    """Folders in which nothing is a manifest's source: processes with their environments, and the node's own home."""
    secrets: tuple[Path, ...] = ()
    """Files, and folders of files, that are no source under any name: the home's keys, logins and database."""
    command_s: float = 600.0  # guess
    command_memory_bytes: int = 2 * GIB
    """Of a sandboxed command and all its children.  # guess: as an engine; a command turns one stream into another"""
    command_disk_bytes: int = 2 * GIB
    """Of what a program of a container image writes beside its output.  # guess"""
    command_processes: int = 256
    """At once, threads included.  # guess: a pipeline of shells, and programs with a thread for each core"""


async def wait_held_back(rate: ByteRate, deadline: asyncio.Timeout) -> None:
    """Wait until more bytes may move; what this node holds back is not held against the server (DAEMON-13).

    Where no deadline stood while a rate is set, a server that sends a byte now and then would be read for ever.
    """
    if deadline.expired():
        return  # its end is on the way to this task, and nothing moves it any more
    clock, ends_at = asyncio.get_running_loop().time, deadline.when()
    began = clock()
    deadline.reschedule(None)
    await rate.wait()
    deadline.reschedule(None if ends_at is None else ends_at + clock() - began)


class BoundedFile:
    """A new file that cannot grow beyond a limit."""

    def __init__(self, path: Path, source: str, limits: SourceLimits, *, packed_bytes: int | None = None) -> None:
        self._path = path
        self._source = source
        self._limits = limits
        self._packed_bytes = packed_bytes
        self._size_bytes = 0
        with mapped_os_errors(path):
            self._file = path.open("xb", buffering=0)

    def write(self, chunk: bytes) -> None:
        """Append bytes.

        Raises:
            SourceTooLargeError: Beyond the limit, or beyond the ratio to the packed size.
            HomeFullError: No room.
        """
        size_bytes = self._size_bytes + len(chunk)
        if size_bytes > self._limits.size_bytes:
            raise SourceTooLargeError(self._source, "size_bytes", self._limits.size_bytes)
        if self._packed_bytes is not None and size_bytes > self._limits.unpack_free_bytes:
            allowed = max(self._packed_bytes * self._limits.unpack_ratio, self._limits.unpack_free_bytes)
            if size_bytes > allowed:
                raise SourceTooLargeError(self._source, "unpack_ratio", allowed)
        with mapped_os_errors(self._path), memoryview(chunk) as view:
            written = 0
            while written < len(view):
                written += self._file.write(view[written:])
        self._size_bytes = size_bytes

    def __enter__(self) -> "BoundedFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if kind is not None:
            self._path.unlink(missing_ok=True)
