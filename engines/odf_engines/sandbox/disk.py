"""What a hostile process holds on disk, and how to remove it.

A process that can write to a folder can hide what it writes: in files without a name, in folders that nobody may open,
in folders nested deeper than a path can be long. Neither counting nor removing goes by paths of more than one name, and
what cannot be looked into counts as a flood.

Source: clauses SANDBOX-8 and SANDBOX-14 in ``spec/extensions/sandbox.md``.
"""

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from odf_engines.sandbox.resources import read_process_file

_MOST_ENTRIES = 20_000  # guess: a session has a few hundred files; more is an attack on inodes
_DEEPEST = 32  # guess: Spark's own folders are five deep
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are: stat(2)

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


def disk_usage(folder: Path) -> DiskUsage:
    """Measure a folder that a hostile process may be writing to.

    Links are not followed. Counting stops at bounds of entries and depth, since a fast writer could keep it busy for
    ever; then the folder is flooded.
    """
    size_bytes = entries = 0
    is_flooded = False
    try:
        waiting = [(os.open(folder, _FOLDER), 0)]
    except OSError:
        return DiskUsage()
    try:
        while waiting and not is_flooded:
            current, depth = waiting.pop()
            try:
                for name, found in _entries(current):
                    entries += 1
                    size_bytes += found.st_blocks * _BLOCK_BYTES
                    is_flooded = entries > _MOST_ENTRIES
                    if is_flooded:
                        break
                    if stat.S_ISDIR(found.st_mode):
                        is_flooded = depth >= _DEEPEST or not _descend(current, name, depth + 1, waiting)
            finally:
                os.close(current)
    finally:
        for descriptor, _ in waiting:
            os.close(descriptor)
    return DiskUsage(size_bytes, entries, is_flooded)


class WatchedFolder:
    """A folder that a tree of processes can write to.

    Args:
        folder: On this host.
        largest_bytes: How large one file can be: what a file without a name counts that nobody outside can measure,
            since it is mapped but no longer open, or waits in a socket for whoever receives it.
    """

    def __init__(self, folder: Path, largest_bytes: int) -> None:
        self._folder, self._largest_bytes = folder, largest_bytes
        self._only_mapped: set[int] = set()

    def usage(self, process_ids: Collection[int]) -> DiskUsage:
        """Measure the folder, and all files of its file system that have no name any more and that a process holds.

        A file that seems only mapped counts from the second look on: it may have been opened, or be about to be
        unmapped, between two steps of one look.
        """
        used = disk_usage(self._folder)
        try:
            device = self._folder.stat().st_dev
        except OSError:
            return used  # it is gone, as at the end of a session
        held, waiting = _open_files(process_ids, device)
        before, self._only_mapped = self._only_mapped, _mapped_files(process_ids, device) - held.keys()
        unseen = len(before & self._only_mapped) + waiting
        return replace(used, size_bytes=used.size_bytes + sum(held.values()) + unseen * self._largest_bytes)


def _open_files(process_ids: Iterable[int], device: int) -> tuple[dict[int, int], int]:
    """Return bytes of each open file without a name, by its inode, and how many files wait in sockets."""
    held: dict[int, int] = {}
    waiting = 0
    for process_id in process_ids:
        # Processes end, and descriptors are closed, between any two looks.
        with contextlib.suppress(OSError), os.scandir(f"/proc/{process_id}/fd") as descriptors:
            for entry in descriptors:
                with contextlib.suppress(OSError):
                    found = entry.stat()  # of the file behind the link, which has no path
                    if stat.S_ISSOCK(found.st_mode):
                        sent = _WAITING.search(read_process_file(f"/proc/{process_id}/fdinfo/{entry.name}"))
                        waiting += int(sent[1]) if sent else 0
                    elif found.st_dev == device and not found.st_nlink and stat.S_ISREG(found.st_mode):
                        held[found.st_ino] = found.st_blocks * _BLOCK_BYTES
    return held, waiting


def _mapped_files(process_ids: Iterable[int], device: int) -> set[int]:
    """Return the inodes of mapped files without a name, open or not."""
    mapped: set[int] = set()
    for process_id in process_ids:
        with contextlib.suppress(OSError):
            maps = read_process_file(f"/proc/{process_id}/maps")
            for major, minor, inode in _DELETED_MAP.findall(maps) if "(deleted)" in maps else ():
                if os.makedev(int(major, 16), int(minor, 16)) == device:
                    mapped.add(int(inode))
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


def _descend(parent: int, name: str, depth: int, waiting: list[tuple[int, int]]) -> bool:
    """Open a folder for a later look; false if it is there and cannot be opened."""
    try:
        waiting.append((os.open(name, _FOLDER, dir_fd=parent), depth))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


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
