"""Which layers of the sandbox work on this machine, and which of them its operator can do without.

Each layer is tried, not assumed. One that is missing means that no engine starts, unless the operator named it in
``ODF_NODE_SANDBOX_WITHOUT``; nothing else, no request and no dataset, can make the sandbox weaker.

Source: clauses SANDBOX-1, SANDBOX-13 and SANDBOX-16 in ``spec/extensions/sandbox.md``.
"""

import contextlib
import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from odf_engines.errors import SandboxUnavailableError
from odf_engines.sandbox.boot_notes import find_result, keep_result
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.system_calls import RULES, open_filter

WITHOUT_VARIABLE = "ODF_NODE_SANDBOX_WITHOUT"

_PROBE = "filter in force"
_PROBE_TIMEOUT_S = 10  # guess: the probe takes milliseconds


class Layer(StrEnum):
    """A layer that a machine can lack; the others come with the program."""

    NAMESPACES = "namespaces"
    CGROUP_NAMESPACE = "cgroup-namespace"
    FILTER = "system-call-filter"
    WATCH = "watch"


@dataclass(frozen=True, slots=True)
class LayerFinding:
    """Whether a layer works here, and what was found or why not."""

    layer: Layer
    is_there: bool
    found: str


def examine_layers() -> tuple[LayerFinding, ...]:
    """Try every layer: what works once for a start of this machine, what does not whenever it is asked for.

    A machine that was stopped or had no memory for a moment lacks nothing afterwards, and daemons live for months.
    """
    return (*_namespaces(), _filter(), _watch())


def accepted_layers(environment: Mapping[str, str]) -> frozenset[Layer]:
    """Return the layers that the operator does without.

    Raises:
        SandboxUnavailableError: A name is no layer.
    """
    names = [name.strip() for name in environment.get(WITHOUT_VARIABLE, "").split(",") if name.strip()]
    known = {str(layer): layer for layer in Layer}
    if unknown := [name for name in names if name not in known]:
        raise SandboxUnavailableError(f"{WITHOUT_VARIABLE}: no layer {unknown[0]!r}; there are {', '.join(known)}")
    return frozenset(known[name] for name in names)


def missing_layers(accepted: Collection[Layer]) -> frozenset[Layer]:
    """Return the layers that do not work here, all of which the operator does without.

    Raises:
        SandboxUnavailableError: One is missing that the operator did not name; says which, why, and what to do.
    """
    missing = [finding for finding in examine_layers() if not finding.is_there]
    if refused := [finding for finding in missing if finding.layer not in accepted]:
        reasons = "; ".join(f"{finding.layer}: {finding.found}" for finding in refused)
        names = ",".join(finding.layer for finding in missing)
        raise SandboxUnavailableError(
            f"{reasons}; fix it, or say with {WITHOUT_VARIABLE}={names} that this machine needs no better sandbox"
        )
    return frozenset(finding.layer for finding in missing)


def _namespaces() -> tuple[LayerFinding, LayerFinding]:
    try:
        found = find_bubblewrap()
    except SandboxUnavailableError as error:
        none = LayerFinding(Layer.NAMESPACES, False, error.reason)
        return none, LayerFinding(Layer.CGROUP_NAMESPACE, False, "there is no bubblewrap that works")
    own = "the sandbox has its own" if found.has_cgroup_namespace else "this machine's kernel makes none"
    return (
        LayerFinding(Layer.NAMESPACES, True, f"user, mount, process, network, IPC and host name by {found}"),
        LayerFinding(Layer.CGROUP_NAMESPACE, found.has_cgroup_namespace, own),
    )


def _filter() -> LayerFinding:
    program = None
    with contextlib.suppress(SandboxUnavailableError):  # that there is none is told once
        program = find_bubblewrap().path
    try:
        return LayerFinding(Layer.FILTER, True, try_filter(program))
    except SandboxUnavailableError as error:
        return LayerFinding(Layer.FILTER, False, error.reason)


@cache
def try_filter(program: Path | None) -> str:
    """Load the filter into a sandbox and ask the kernel whether it is in force; say how that went.

    Args:
        program: Makes the sandbox; None where there is no sandbox to put it on.

    Raises:
        SandboxUnavailableError: It is not.
    """
    if program is not None and (found := find_result(_PROBE, program, RULES)) is not None:
        return found
    descriptor = open_filter()
    try:
        size_bytes = os.fstat(descriptor).st_size
        if program is None:
            return f"{size_bytes} bytes, not tried"
        reported = subprocess.run(
            [
                str(program), "--unshare-user", "--unshare-pid", "--cap-drop", "ALL",
                "--ro-bind", "/", "/", "--proc", "/proc", "--seccomp", str(descriptor),
                "/bin/cat", "/proc/self/status",
            ],
            pass_fds=[descriptor], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S,
            check=False, env={},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailableError(str(error)) from error
    finally:
        os.close(descriptor)
    # 2 is SECCOMP_MODE_FILTER: proc_pid_status(5)
    if re.search(r"^Seccomp:\s+2$", reported.stdout, re.MULTILINE):
        found = f"{size_bytes} bytes, in force when tried"
        keep_result(_PROBE, found, program, RULES)
        return found
    raise SandboxUnavailableError(reported.stderr.strip()[:300] or "this machine's kernel takes no filter")


def _watch() -> LayerFinding:
    """The watch finds the processes of a sandbox by their parents, which not every kernel tells."""
    if Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return LayerFinding(Layer.WATCH, True, "sees processes, memory, descriptors and disk of the whole sandbox")
    return LayerFinding(Layer.WATCH, False, "/proc does not list the children of a process (CONFIG_PROC_CHILDREN)")
