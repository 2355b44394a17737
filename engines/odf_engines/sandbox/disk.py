"""What a hostile process holds on disk, and how to remove it.

A process that can write to a folder can hide what it writes: in files without a name, in folders that nobody may open,
in folders nested deeper than a path can be long. Neither counting nor removing goes by paths of more than one name, and
what cannot be looked into counts as a flood. All moves meanwhile: files get names and lose them, folders are swept.
Each file counts once in a look, and what needs two steps to be seen counts only when the next look sees it too.

Source: clauses SANDBOX-8 and SANDBOX-14 in ``spec/extensions/sandbox.md``.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Collection, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from odf_engines.sandbox.resources import read_process_file

_MAX_ENTRIES = 20_000  # guess: a session has a few hundred files; more is an attack on inodes
_DEEPEST = 32  # guess: Spark's own folders are five deep
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are: stat(2)

# It is no folder any more; or this host lacks what opening one takes, which says nothing about the folder.
_NOT_SEEN = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMFILE, errno.ENFILE, errno.ENOMEM))

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# address, permissions, offset, device, inode, path: proc_pid_maps(5)
_DELETED_MAP = re.compile(r"^[0-9a-f-]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+) .* \(deleted\)$", re.MULTILINE)
# Descriptors that were sent and not yet received; since Linux 5.8, for local sockets: net/unix/af_unix.c
_WAITING = re.compile(r"^scm_fds:\s*(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes on disk, number of entries, and whether there is more than an honest session makes, or could be seen."""

    size_bytes: int = 0
    entries: int = 0
    is_flooded: bool = False


_File = tuple[int, int]  # device and inode: what stays the same while names come and go


def disk_usage(folder: Path) -> DiskUsage:
    """Measure a folder that a hostile process may be writing to.

    Links are not followed. Counting stops at bounds of entries and depth, since a fast writer could keep it busy for
    ever; then the folder is flooded.
    """
    sizes, entries, is_flooded = _look_into(folder)
    return DiskUsage(sum(sizes.values()), entries, is_flooded)


def _look_into(folder: Path) -> tuple[dict[_File, int], int, bool]:
    """Return bytes of each file that has a name, entries, and whether the folder is flooded."""
    sizes: dict[_File, int] = {}
    entries = 0
    try:
        top = os.open(folder, _FOLDER)
    except OSError:
        return sizes, entries, False
    try:
        with contextlib.closing(_walk(top, 0)) as walked:
            for found in walked:
                entries += found is not None
                if found is None or entries > _MAX_ENTRIES:
                    return sizes, entries, True
                sizes[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK_BYTES
    finally:
        os.close(top)
    return sizes, entries, False


def _walk(folder: int, depth: int) -> Generator[os.stat_result | None, None, None]:
    """Yield what is in a folder and below, with few descriptors at a time; None for what cannot be looked into."""
    for name, found in _entries(folder):
        yield found
        if not stat.S_ISDIR(found.st_mode):
            continue
        if depth == _DEEPEST:
            yield None
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno not in _NOT_SEEN:
                yield None
            continue
        try:
            yield from _walk(inner, depth + 1)
        finally:
            os.close(inner)


class WatchedFolder:
    """A folder that a tree of processes can write to.

    Args:
        folder: On this host.
        largest_bytes: How large one file can be: what a file without a name counts that nobody outside can measure,
            since it is mapped but no longer open, or waits in a socket for whoever receives it.
    """

    def __init__(self, folder: Path, largest_bytes: int) -> None:
        self._folder, self._largest_bytes = folder, largest_bytes
        self._only_mapped: set[_File] = set()
        self._waiting = 0

    def usage(self, process_ids: Collection[int]) -> DiskUsage:
        """Measure the folder, and all files of its file system that have no name any more and that a process holds.

        What nobody can measure counts from the second look on: a file that seems only mapped may have been opened, or
        be about to be unmapped, between two steps of one look, and one that waits be received at once.
        """
        sizes, entries, is_flooded = _look_into(self._folder)
        try:
            device = self._folder.stat().st_dev
        except OSError:
            return DiskUsage(sum(sizes.values()), entries, is_flooded)  # it is gone, as at the end of a session
        held, waiting = _open_files(process_ids, device)
        mapped_before, self._only_mapped = self._only_mapped, _mapped_files(process_ids, device) - held.keys()
        waiting_before, self._waiting = self._waiting, waiting
        unseen = len(mapped_before & self._only_mapped) + min(waiting_before, waiting)
        seen_bytes = sum((held | sizes).values())  # what lost its name meanwhile is in both
        return DiskUsage(seen_bytes + unseen * self._largest_bytes, entries, is_flooded)


def _open_files(process_ids: Iterable[int], device: int) -> tuple[dict[_File, int], int]:
    """Return bytes of each open file without a name, and how many files wait in sockets."""
    held: dict[_File, int] = {}
    waiting: dict[int, int] = {}  # by socket, of which a fork has its parent's
    for process_id in process_ids:
        # Processes end, and descriptors are closed, between any two looks.
        with contextlib.suppress(OSError), os.scandir(f"/proc/{process_id}/fd") as descriptors:
            for entry in descriptors:
                with contextlib.suppress(OSError):
                    found = entry.stat()  # of the file behind the link, which has no path
                    if stat.S_ISSOCK(found.st_mode):
                        sent = _WAITING.search(read_process_file(f"/proc/{process_id}/fdinfo/{entry.name}"))
                        waiting[found.st_ino] = int(sent[1]) if sent else 0
                    elif found.st_dev == device and not found.st_nlink and stat.S_ISREG(found.st_mode):
                        held[device, found.st_ino] = found.st_blocks * _BLOCK_BYTES
    return held, sum(waiting.values())


def _mapped_files(process_ids: Iterable[int], device: int) -> set[_File]:
    """Return the mapped files without a name, open or not."""
    mapped: set[_File] = set()
    for process_id in process_ids:
        with contextlib.suppress(OSError):
            maps = read_process_file(f"/proc/{process_id}/maps")
            for major, minor, inode in _DELETED_MAP.findall(maps) if "(deleted)" in maps else ():
                if os.makedev(int(major, 16), int(minor, 16)) == device:
                    mapped.add((device, int(inode)))
    return mapped


def remove_tree(folder: Path) -> None:
    """Remove a folder with all in it, whatever its modes and depth; what cannot be removed stays.

    Safe while somebody writes to it: nothing outside of the folder is opened, moved or removed.
    """
    with contextlib.suppress(OSError):
        top = os.open(folder, _FOLDER)
        try:
            # Deep folders are moved up, so that no step goes further than two names.
            number = 0
            while found := [name for name, each in _entries(top) if not _remove_entry(top, name, each)]:
                before = number
                for name in found:
                    number = _empty(top, name, number)
                if number == before:
                    break
        finally:
            os.close(top)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _entries(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                yield entry.name, os.stat(entry.name, dir_fd=folder, follow_symlinks=False)


def _remove_entry(folder: int, name: str, found: os.stat_result) -> bool:
    """Remove a file or an empty folder; false for a folder that is left."""
    try:
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except OSError:
        return not stat.S_ISDIR(found.st_mode)
    return True


def _empty(top: int, name: str, number: int) -> int:
    """Remove the files of a folder and move its folders up to ``top``; return the next free number for a name."""
    # Only by O_PATH can a folder be opened whose modes forbid it.
    with contextlib.suppress(OSError):
        place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
        try:
            Path(f"/proc/self/fd/{place}").chmod(0o700)
            folder = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(place)
        try:
            for inner, found in _entries(folder):
                if not _remove_entry(folder, inner, found):
                    number += 1
                    with contextlib.suppress(OSError):
                        os.rename(inner, f".removed-{number}", src_dir_fd=folder, dst_dir_fd=top)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=top)
        number += 1
    return number
