"""The sandboxed process that reads untrusted Parquet, asked from outside: one line of JSON each way, with open files.

It is started once for many files of one origin. It holds no file but those that it was handed, open for reading, and
has the sandbox of engines around it: what a file breaks in it stays there. Its answers are as untrusted as the files:
whoever asks checks their form.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``; SANDBOX-17.
"""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.output_reader import profile_of_reader
from odf_engines.host.parts import count_of, receive_parts
from odf_engines.host.runtime import ENTRY, confined_command, package_folder
from odf_engines.reading.limits import ReadingLimits
from odf_engines.sandbox.layers import Layer, accepted_layers, missing_layers
from odf_engines.sandbox.process import SandboxedProcess
from odf_engines.sandbox.profile import Profile
from odf_engines.sandbox.resources import kernel_limits
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnavailableError, UnsupportedError

PROGRAM: Final = "odf_engines.reading.program"
_PACKAGES: Final = ("msgspec", "numpy", "pyarrow")
_BESIDE_BYTES: Final = 256 * 1024 * 1024  # guess: libraries and their data, which the limit of the kernel leaves out
_LIFETIME_CPU_S: Final = 1_000_000  # each request has a limit of its own
_KILLED: Final = (-signal.SIGKILL, 128 + signal.SIGKILL)
_Found = TypeVar("_Found")


class _OpenProcess(SandboxedProcess):
    """The same program as a plain process, where the operator does without namespaces and confines it otherwise."""

    is_sandbox = False

    def _start(self, profile: Profile, program: Sequence[str]) -> "subprocess.Popen[bytes]":
        entry = package_folder("odf_engines").parent.joinpath(*ENTRY.split(".")).with_suffix(".py")
        command = [sys.executable, str(entry), *program[program.index(PROGRAM) :]]
        return self._popen(command, profile, env=dict(profile.environment))


class ReaderProcess:
    """Started with the first request or before, and again after one that was too much for it.

    Args:
        limits: Of each request.
    """

    def __init__(self, limits: ReadingLimits | None = None) -> None:
        self.limits = limits or ReadingLimits()
        self._process: SandboxedProcess | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Start the process, which loads what it needs by itself; for those who still wait for the files.

        Raises:
            SandboxUnavailableError: A layer of the sandbox is missing that the operator does not do without.
        """
        if self._process is None:
            self._start()

    def ask(
        self,
        operation: str,
        arguments: dict[str, Any],
        files: Sequence[Path],
        read: Callable[[Any, bytes], _Found],
        *,
        most_bytes: int = 0,
        target: BinaryIO | None = None,
        sequence_number: int | None = None,
    ) -> _Found:
        """Ask for one thing.

        Args:
            operation: See ``program``.
            arguments: Plain values.
            files: What is handed over, open, in the order that the operation asks for.
            read: Makes sense of the answer and of the bytes that follow it; fails with any error of Python's where
                there is none, as the program may be in the hands of a file that it read.
            most_bytes: How many bytes may follow.
            target: Gets what comes in parts before the answer.
            sequence_number: Of a block, for errors.

        Raises:
            RejectedError, MalformedError, UnsupportedError: What the program says of the files; or they cost more than
                the limits allow, or the answer makes no sense (ROWS-6).
            UnavailableError: Somebody ended the process.
            SandboxUnavailableError: See ``start``.
        """
        with ExitStack() as opened:
            descriptors = [_open(path, opened) for path in files]
            size_bytes = sum(os.fstat(each).st_size for each in descriptors)
            cpu_s = self.limits.cpu_s + size_bytes * self.limits.cpu_s_per_megabyte // 1_000_000
            request = {"operation": operation, "files": len(files), "cpu_s": cpu_s, **arguments}
            process = self._process or self._start()
            # The program keeps its time itself, by the kernel; the watch is for one that a file has taken over. What
            # is mapped of the files counts as memory there.
            process.allow(cpu_s=2 * cpu_s + 10, memory_bytes=self.limits.memory_bytes + size_bytes + _BESIDE_BYTES)
            wall_s = 60.0 + 10 * cpu_s  # of a machine that does much else
            try:
                process.send(json.dumps(request).encode(), wall_s, descriptors)
                answer = receive_parts(process, wall_s, target, most_bytes=self.limits.written_bytes)
                if "error" not in answer:
                    body = process.receive_bytes(count_of(answer["bytes"], most_bytes), wall_s)
                    return read(answer["result"], body)
                error = _error_of(answer["error"], sequence_number)
            except EngineFailureError as failure:
                self.close()
                if process.exit_code in _KILLED:  # by an operator or a machine without memory, as far as anybody knows
                    raise UnavailableError("the reader of slices was ended by SIGKILL; try again") from failure
                raise self._too_dear(sequence_number, cpu_s, failure.message) from failure
            except LimitExceededError as exceeded:
                self.close()
                raise self._too_dear(sequence_number, cpu_s, str(exceeded)) from exceeded
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as nonsense:
                self.close()
                raise self._too_dear(sequence_number, cpu_s, "an answer that makes no sense") from nonsense
            except BaseException:
                self.close()  # the rest of its answer would be taken for the next one
                raise
        raise error or self._too_dear(sequence_number, cpu_s, "more memory needed")

    def stop(self) -> None:
        """End the process for good, from another thread than the one that waits for its answer, which then fails."""
        self._is_stopped = True
        if (process := self._process) is not None:
            process.stop()

    def close(self) -> None:
        """End the process; the next request starts another. Safe to repeat."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()

    def _start(self) -> SandboxedProcess:
        missing = missing_layers(accepted_layers(os.environ))
        kind = _OpenProcess if Layer.NAMESPACES in missing else SandboxedProcess
        profile = profile_of_reader(_PACKAGES, has_filter=Layer.FILTER not in missing)
        limits = Limits(memory_bytes=self.limits.memory_bytes, cpu_s=_LIFETIME_CPU_S, output_bytes=0)
        kernel = kernel_limits(
            memory_bytes=limits.memory_bytes, cpu_s=limits.cpu_s, file_bytes=0, processes=limits.processes
        )
        del kernel["RLIMIT_AS"]  # Arrow reserves addresses that it does not use, and the files are mapped
        command = confined_command(PROGRAM, {"limits": {**kernel, "RLIMIT_DATA": limits.memory_bytes}})
        process = self._process = kind(replace(profile, holds_files=True), command, limits)
        if self._is_stopped:  # whoever stopped it may have looked just before
            process.stop()
        return process

    def _too_dear(self, sequence_number: int | None, cpu_s: int, found: str) -> RejectedError:
        return RejectedError(
            "ROWS-6 slice-is-read-at-bounded-cost",
            sequence_number=sequence_number,
            expected=f"{self.limits.memory_bytes >> 20} MiB of memory and {cpu_s} s of processor time",
            found=found,
        )


def _open(path: Path, opened: ExitStack) -> int:
    # Opening a pipe would wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    opened.callback(os.close, descriptor)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise MalformedError("slice", where=path.name, expected="a plain file")
    return descriptor


def _error_of(fields: dict[str, Any], sequence_number: int | None) -> OdfError | None:
    """Make the error that the program reported; None: it needs more memory."""
    kind, what = fields["kind"], fields["what"]
    expected, found = (None if fields[name] is None else str(fields[name]) for name in ("expected", "found"))
    if kind == "memory":
        return None
    if kind == "rejected":
        return RejectedError(str(what), sequence_number=sequence_number, expected=expected, found=found)
    if kind == "malformed":
        where = None if fields["where"] is None else str(fields["where"])
        return MalformedError(str(what), where=where, expected=expected, found=found)
    return UnsupportedError("slice", found=found)
