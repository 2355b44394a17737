"""What a sandboxed process may use up: limits it takes on itself, and a watch from outside.

Limits of the kernel are set by the worker before it reads its first request; without capabilities it cannot raise them
again. They do not bind every process (the kernel counts no processes for root, and counts memory by process, not
together), so the host also watches the whole tree and kills it.

Source: clauses SANDBOX-7 to SANDBOX-9 in ``spec/extensions/sandbox.md``.
"""

import contextlib
import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Usage", "disk_usage", "is_flooded", "kernel_limits", "set_kernel_limits", "usage_of"]

# Address space that the Java runtime reserves without using: compressed classes 1 GiB, code 240 MiB, class-data
# archive, thread stacks and malloc arenas of 64 MiB each.
_RESERVED_BYTES = 6 * 1024**3

_OPEN_FILES = 4096  # guess: Spark opens its 280 archives and a few files per task
_MAX_ENTRIES = 20_000  # guess: a session has a few hundred files; more is an attack on inodes

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def kernel_limits(*, memory_bytes: int, cpu_s: int, file_bytes: int, processes: int) -> dict[str, int]:
    """Return the limits by the name of their constant in ``resource``."""
    return {
        "RLIMIT_AS": memory_bytes + _RESERVED_BYTES,
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": cpu_s,
        "RLIMIT_FSIZE": file_bytes,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_NOFILE": _OPEN_FILES,
        "RLIMIT_NPROC": processes,
    }


def set_kernel_limits(limits: dict[str, int]) -> None:
    """Take the limits on for this process and all it starts, for good."""
    for name, value in limits.items():
        which = getattr(resource, name, None)
        if which is None:
            # CPython 3.11 has no name for it on some systems; the number is the same on every Linux.
            which = {"RLIMIT_MSGQUEUE": 12}[name]
        _, hard = resource.getrlimit(which)
        bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (bounded, bounded))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes holds now: resident memory, and processes and threads together."""

    memory_bytes: int
    processes: int


def usage_of(process_id: int) -> Usage:
    """Measure a process and all its descendants; those that end meanwhile count as nothing."""
    memory_bytes = processes = 0
    for each in _tree(process_id):
        folder = Path("/proc", str(each))
        try:
            memory_bytes += int((folder / "statm").read_text().split()[1]) * _PAGE_BYTES
            processes += sum(1 for _ in (folder / "task").iterdir())
        except (OSError, IndexError, ValueError):
            continue
    return Usage(memory_bytes, processes)


def _tree(process_id: int) -> Iterator[int]:
    waiting = [process_id]
    while waiting:
        each = waiting.pop()
        yield each
        # The first thread of a process need not be the one that forked.
        try:
            tasks = [task.name for task in Path("/proc", str(each), "task").iterdir()]
        except OSError:
            continue
        for task in tasks:
            try:
                waiting += map(int, Path("/proc", str(each), "task", task, "children").read_text().split())
            except OSError:
                continue


def disk_usage(folder: Path) -> tuple[int, int]:
    """Return bytes on disk and number of entries below a folder that a hostile process may be writing to.

    Links are not followed. Counting stops at a bound of entries, since a fast writer could keep it busy for ever.
    """
    size_bytes = entries = 0
    waiting = [folder]
    while waiting and entries <= _MAX_ENTRIES:
        # Entries may vanish between any two looks.
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                entries += 1
                with contextlib.suppress(OSError):
                    size_bytes += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                if entries > _MAX_ENTRIES:
                    break
    return size_bytes, entries


def is_flooded(entries: int) -> bool:
    """Whether a folder has more entries than an honest session makes."""
    return entries > _MAX_ENTRIES
