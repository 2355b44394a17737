"""What a sandboxed process may use up: limits it takes on itself, and a watch from outside.

Limits of the kernel are set by the worker before it reads its first request; without capabilities it cannot raise them
again. They do not bind every process (the kernel counts no processes for root, and counts memory by process, not
together), so the host also watches the whole tree and kills it.

Source: clauses SANDBOX-7 to SANDBOX-9 in ``spec/extensions/sandbox.md``.
"""

import contextlib
import os
import re
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

# Address space that the Java runtime reserves without using: compressed classes 1 GiB, code 240 MiB, class-data
# archive, thread stacks and malloc arenas of 64 MiB each.
_RESERVED_BYTES = 6 * 1024**3

_OPEN_FILES = 4096  # guess: Spark opens its 280 archives and a few files per task

MAX_DESCRIPTORS = 2 * _OPEN_FILES  # guess: of all processes together; Java and Python have 400

_FORK_S = 1.0  # guess: on a busy machine a fork waits that long until it is another program
_FORK_LOOKS = 3  # guess: who looks can itself have been stopped for longer than that between two looks
_MAX_ENDED = 4_096  # guess: of processes that began and ended since the last looks; what is forgotten still counts

# Swapped-out memory counts too, else a process could push its pages out and fill the next ones.
_MEMORY = re.compile(r"^Vm(?:RSS|Swap):\s+(\d+) kB$", re.MULTILINE)
# Counted from behind the name: proc_pid_stat(5)
_OWN_TICKS = slice(11, 13)  # utime, stime
_ENDED_TICKS = slice(13, 15)  # cutime, cstime: of children that ended and were waited for
_START = 19
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_READ_BYTES = 64 * 1024
_THREADS = re.compile(r"^Threads:\s+(\d+)$", re.MULTILINE)


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
    """Take the limits on for this process and all it starts, for good.

    At the limit of processor time the kernel sends SIGXCPU, which says why, and a second later SIGKILL to whoever
    ignores that; were the two limits one, it would send SIGKILL at once, which says nothing.
    """
    for name, value in limits.items():
        which = getattr(resource, name, None)
        if which is None:
            # CPython 3.11 has no name for it on some systems; the number is the same on every Linux.
            which = {"RLIMIT_MSGQUEUE": 12}[name]
        _, hard = resource.getrlimit(which)
        bounds = (value, value + 1 if name == "RLIMIT_CPU" else value)
        soft, hard = bounds if hard == resource.RLIM_INFINITY else (min(bound, hard) for bound in bounds)
        resource.setrlimit(which, (soft, hard))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tree of processes holds now.

    Attributes:
        memory_bytes: Resident and swapped out.
        processes: Processes and threads together.
        cpu_s: Processor time of all processes, and of their children that ended and were waited for.
        own_cpu_s: Processor time of each process alone, by its number and when it started.
        descriptors: Open files, sockets and pipes; each can hold memory of the kernel that belongs to no process.
        process_ids: Of all its processes, on the host.
    """

    memory_bytes: int
    processes: int
    cpu_s: float = 0.0
    own_cpu_s: Mapping[tuple[int, str], float] = field(default_factory=dict)
    descriptors: int = 0
    process_ids: tuple[int, ...] = ()


def usage_of(process_id: int) -> Usage:
    """Measure a process and all its descendants; those that end meanwhile count as nothing."""
    memory_bytes = processes = descriptors = 0
    cpu_s = 0.0
    own_cpu_s = {}
    found = []
    for each in _tree(process_id):
        try:
            status = read_process_file(f"/proc/{each}/status")
            fields = read_process_file(f"/proc/{each}/stat").rpartition(")")[2].split()
        except OSError:
            continue
        found.append(each)
        own_cpu_s[each, fields[_START]] = own_s = sum(map(int, fields[_OWN_TICKS])) / _TICKS_PER_S
        cpu_s += own_s + sum(map(int, fields[_ENDED_TICKS])) / _TICKS_PER_S
        memory_bytes += sum(1024 * int(kibibytes) for kibibytes in _MEMORY.findall(status))
        processes += sum(map(int, _THREADS.findall(status)))
        with contextlib.suppress(OSError):
            descriptors += len(os.listdir(f"/proc/{each}/fd"))  # noqa: PTH208 - asked five times a second
    return Usage(memory_bytes, processes, cpu_s, own_cpu_s, descriptors, tuple(found))


@dataclass(frozen=True, slots=True)
class Activity:
    """Which processes a tree has, and how much processor time they and their ended children used, in ticks."""

    process_ids: tuple[int, ...] = ()
    ticks: int = 0

    def has_hardly_run(self, before: "Activity", ticks: int) -> bool:
        """Say whether no process began or ended since ``before``, and all together ran for at most ``ticks``."""
        return self.process_ids == before.process_ids and self.ticks - before.ticks <= ticks


def activity_of(process_id: int) -> Activity:
    """Look whether a process or a descendant has run: as long as this stays equal, none did for a tick, nor began.

    Costs a tenth of ``usage_of`` with all that goes with it.
    """
    found, ticks = [], 0
    for each in _tree(process_id):
        with contextlib.suppress(OSError):
            fields = read_process_file(f"/proc/{each}/stat").rpartition(")")[2].split()
            ticks += sum(map(int, fields[_OWN_TICKS])) + sum(map(int, fields[_ENDED_TICKS]))
            found.append(each)
    return Activity(tuple(found), ticks)


class LastingExcess:
    """Says whether what a tree of processes holds is too much, and not only shown twice.

    A fork shows its parent's memory and descriptors until it runs a program of its own. Whoever is within the limit
    shows at most twice of it so; more than that is not waited for.

    Args:
        allowed: The limit.
        clock: Seconds that never go back.
    """

    def __init__(self, allowed: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._allowed, self._clock = allowed, clock
        self._looks, self._since_s = 0, 0.0

    def is_crossed(self, found: int) -> bool:
        """Take in one look."""
        if found <= self._allowed:
            self._looks = 0
            return False
        now_s = self._clock()
        if not self._looks:
            self._since_s = now_s
        self._looks += 1
        return found > 2 * self._allowed or (self._looks >= _FORK_LOOKS and now_s - self._since_s >= _FORK_S)


class CpuMeter:
    """Adds up the processor time of a tree of processes from looks at it.

    Two sums, of which the larger counts: what the kernel hands on from ended children to parents, which a parent can
    avert by ignoring them; and what each process had used whenever it was seen, which misses what it did after the
    last look at it. One look can miss a process that goes on: the kernel leaves out children while others of the same
    parent end (proc_pid_tid_children(5)), and moves those of a thread or process that ends to another.
    """

    def __init__(self) -> None:
        self._handed_on_s = 0.0
        self._seen_s: dict[tuple[int, str], float] = {}  # each process, the last seen at the end
        self._forgotten_s = 0.0

    @property
    def spent_s(self) -> float:
        """Processor time so far, in seconds; never decreases."""
        return max(self._handed_on_s, self._forgotten_s + sum(self._seen_s.values()))

    def add(self, usage: Usage) -> None:
        """Take in one look."""
        self._handed_on_s = max(self._handed_on_s, usage.cpu_s)
        for process, spent_s in usage.own_cpu_s.items():
            self._seen_s.pop(process, None)
            self._seen_s[process] = spent_s
        while len(self._seen_s) > len(usage.own_cpu_s) + _MAX_ENDED:
            self._forgotten_s += self._seen_s.pop(next(iter(self._seen_s)))


def read_process_file(path: str) -> str:
    """Read a file of ``/proc`` with as little around it as can be, as hundreds are read every second.

    Raises:
        OSError: The process has ended.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, _READ_BYTES):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts).decode("utf-8", "replace")


def _tree(process_id: int) -> Iterator[int]:
    waiting = [process_id]
    while waiting:
        each = waiting.pop()
        yield each
        # The first thread of a process need not be the one that forked.
        try:
            tasks = os.listdir(f"/proc/{each}/task")  # noqa: PTH208 - asked five times a second
        except OSError:
            continue
        for task in tasks:
            try:
                waiting += map(int, read_process_file(f"/proc/{each}/task/{task}/children").split())
            except OSError:
                continue
