"""Running a few lines of Python inside a sandbox like that of an engine, or with one layer of it missing."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from odf_engines.confined.process import SandboxedProcess
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.profile import Mount, Profile, build_command, write_accounts
from odf_engines.sandbox.resources import usage_of
from odf_engines.sandbox.system_calls import open_filter
from odf_spark.runtime import find_runtime

PYTHON = ("/runtime/python/bin/python3", "-I", "-S", "-B", "-c")
MIB = 1024 * 1024


def small_profile(folder: Path, *, writable: Path | None = None, memory_bytes: int = 8 * MIB) -> Profile:
    """What an engine's sandbox contains, without Spark and Java."""
    accounts = folder / "etc"
    accounts.mkdir(exist_ok=True)
    heavy = ("/runtime/site", "/runtime/java")
    mounts = [mount for mount in find_runtime().mounts() if not mount.target.startswith(heavy)]
    if writable is not None:
        mounts.append(Mount(writable, "/exchange/out", is_writable=True))
    return Profile(
        mounts=(*mounts, *write_accounts(accounts)),
        links=find_runtime().links(),
        memory_folders={"/tmp": memory_bytes, "/scratch": memory_bytes},
        environment={"HOME": "/scratch", "LD_LIBRARY_PATH": "/runtime/python/lib"},
        folder="/scratch",
    )


def run_inside(
    profile: Profile, code: str, *, without: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run code in a sandbox; ``without`` leaves out words of its command, each with one argument if it takes one."""
    descriptor = open_filter()
    try:
        command = build_command(find_bubblewrap(), profile, [*PYTHON, code], filter_descriptor=descriptor)
        return subprocess.run(
            _less(command, without),
            pass_fds=[descriptor],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env=environment or {},
        )
    finally:
        os.close(descriptor)


def stop_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process that is asked for an answer at once be stopped before: it has none, whoever waits how slowly."""
    send = SandboxedProcess.send

    def stop_and_send(process: SandboxedProcess, data: bytes, wall_s: float, descriptors: Sequence[int] = ()) -> None:
        for each in usage_of(process.process_id).process_ids if wall_s < 1 else ():
            os.kill(each, signal.SIGSTOP)
        send(process, data, wall_s, descriptors)

    monkeypatch.setattr(SandboxedProcess, "send", stop_and_send)


def receive_line(process: SandboxedProcess, wall_s: float) -> bytes:
    """Read a line of a program that has no other form of answers, without its end."""
    line = b""
    while not line.endswith(b"\n"):
        line += process.receive(1, wall_s)
    return line[:-1]


def run_outside(code: str) -> subprocess.CompletedProcess[str]:
    """Run the same code on the host, for comparison."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)


def _less(command: list[str], without: Sequence[str]) -> list[str]:
    less = list(command)
    for option in without:
        word, *arguments = option.split(" ")
        position = next(
            i for i in range(len(less)) if less[i] == word and less[i + 1 : i + 1 + len(arguments)] == arguments
        )
        has_value = word in ("--seccomp", "--cap-drop", "--size", "--remount-ro", "--hostname")
        del less[position : position + (2 if has_value else 1)]
    return less
