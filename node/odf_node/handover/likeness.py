"""What a worker takes over from its client, and what cannot be taken over and must therefore be the same.

The kernel tells the truth about the client (``/proc/PID``), so most of it need not be sent.

Source: clause HAND-3 in ``spec/daemon.md``.
"""

import os
import resource
import time
from collections.abc import Mapping
from typing import Final

_NAMESPACES: Final = ("ipc", "mnt", "net", "pid", "user", "uts")
_STATUS_LINES: Final = frozenset(
    {"Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}
)
_READ_AT_START: Final = (
    *("PYTHON", "LC_", "LANG", "LOCPATH", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_", "OPENBLAS_"),
    *("AIOHTTP_", "FROZENLIST_", "MULTIDICT_", "PROPCACHE_", "YARL_"),
)
"""Beginnings of variables that the interpreter, the C library or a library of ours reads once, while it loads."""
_LIMITS: Final = tuple(
    getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"
)


def surroundings_of(process: str) -> tuple[object, ...]:
    """Describe where a process runs and what it may do: namespaces, root folder, identities and capabilities.

    Args:
        process: Its number, or ``self``.

    Raises:
        OSError: The kernel does not say.
    """
    root = os.stat(f"/proc/{process}/root")  # noqa: PTH116 - of /proc
    spaces = tuple(os.readlink(f"/proc/{process}/ns/{name}") for name in _NAMESPACES)  # noqa: PTH115 - of /proc
    return root.st_dev, root.st_ino, spaces, tuple(sorted(_status_of(process, _STATUS_LINES).items()))


def variables_read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Pick the variables that a process which runs already cannot take over."""
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def become_like(process_id: int, environment: Mapping[str, str]) -> None:
    """Give this process the environment, mask, limits, priority and processors of another one.

    Raises:
        OSError, ValueError: Something cannot be taken over.
    """
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.umask(int(_status_of(str(process_id), frozenset({"Umask"}))["Umask"], 8))
    for limit in _LIMITS:
        wanted = resource.prlimit(process_id, limit)
        if wanted != resource.getrlimit(limit):
            resource.setrlimit(limit, wanted)
    priority = os.getpriority(os.PRIO_PROCESS, process_id)
    if priority != os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, priority)
    processors = os.sched_getaffinity(process_id)
    if processors != os.sched_getaffinity(0):
        os.sched_setaffinity(0, processors)


def _status_of(process: str, names: frozenset[str]) -> dict[str, str]:
    with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - of /proc
        lines = (line.partition(":") for line in file)
        return {name: value.strip() for name, _, value in lines if name in names}
