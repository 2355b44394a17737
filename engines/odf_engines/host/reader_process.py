"""The sandboxed process that reads untrusted Parquet, asked from outside, with open files.

It is started once for many files of one origin. It holds no file but those that it was handed, open for reading, and
has the sandbox of engines around it: what a file breaks in it stays there. Its answers are as untrusted as the files:
whoever asks checks their form.

Source: clause ROWS-6 in ``spec/extensions/acceptance.md``; SANDBOX-17.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from odf_engines.confined.process import ProcessKilledError, SandboxedProcess
from odf_engines.confined.program import ConfinedProgram, ReportedError
from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.reader_limits import ReadingLimits
from odf_engines.host.runtime import ENTRY, confined_command, find_packages, find_runtime, package_folder
from odf_engines.sandbox.layers import Layer, accepted_layers, missing_layers
from odf_engines.sandbox.profile import Mount, Profile
from odf_engines.sandbox.resources import kernel_limits
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnavailableError, UnsupportedError

PROGRAM: Final = "odf_engines.reading.program"
_PACKAGES: Final = ("flatbuffers", "msgspec", "numpy", "pyarrow")
_BESIDE_BYTES: Final = 256 * 1024 * 1024  # guess: libraries and their data, which the limit of the kernel leaves out
_LIFETIME_CPU_S: Final = 1_000_000  # each request has a limit of its own
_DETAILS: Final = ("where", "expected", "found")
_Found = TypeVar("_Found")


def profile_of_reader(packages: tuple[str, ...], *given: Mount, has_filter: bool) -> Profile:
    """Return what the sandbox of a program of ours contains that reads what others wrote, and writes no file.

    Args:
        packages: That it imports.
        given: What it reads, and further packages.
        has_filter: See ``Profile``.
    """
    runtime = find_runtime(packages)
    return Profile(
        mounts=(*runtime.mounts(), *given),
        links=runtime.links(),
        environment={
            # Other allocators of Arrow's reserve more memory than they use, which the limit would count.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "LANG": "C.UTF-8",
            "LD_LIBRARY_PATH": "/runtime/python/lib",
            "MALLOC_ARENA_MAX": "2",
            "OMP_NUM_THREADS": "1",
            "TZ": "UTC",
        },
        has_filter=has_filter,
    )


def command_of_reader(program: str, limits: Limits) -> list[str]:
    """Return the command of such a program, which takes on the limits that the kernel keeps."""
    kernel = kernel_limits(
        memory_bytes=limits.memory_bytes, cpu_s=limits.cpu_s, file_bytes=0, processes=limits.processes
    )
    del kernel["RLIMIT_AS"]  # Arrow reserves addresses that it does not use, and files are mapped
    return confined_command(program, {"limits": {**kernel, "RLIMIT_DATA": limits.memory_bytes}})


@dataclass(eq=False)
class ReaderError(Exception):
    """What the program reported instead of a result; texts of a program that may be in the hands of a file."""

    kind: str
    what: str
    where: str | None
    expected: str | None
    found: str | None


class _OpenProcess(SandboxedProcess):
    """The same program as a plain process, where the operator does without namespaces and confines it otherwise."""

    is_sandbox = False

    def _start(self, profile: Profile, program: Sequence[str]) -> "subprocess.Popen[bytes]":
        entry = package_folder("odf_engines").parent.joinpath(*ENTRY.split(".")).with_suffix(".py")
        command = [sys.executable, str(entry), *program[-2:]]  # module and arguments
        return self._popen(command, profile, env=dict(profile.environment))


class ReaderProcess:
    """Started with the first request or before, and again after one that was too much for it.

    Args:
        limits: Of each request.
        program: Module of a plug-in that calls ``serve_files``, in the place of ours; its package imports nothing of
            the node.
    """

    def __init__(self, limits: ReadingLimits | None = None, program: str = PROGRAM) -> None:
        self.limits = limits or ReadingLimits()
        self.program = program
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
        max_bytes: int = 0,
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
            max_bytes: How many bytes may follow.
            target: Gets what comes in parts before the answer.
            sequence_number: Of a block, for errors.

        Raises:
            RejectedError, MalformedError, UnsupportedError: What the program says of the files; or they cost more than
                the limits allow, or the answer makes no sense (ROWS-6).
            UnavailableError: Somebody ended the process.
            SandboxUnavailableError: See ``start``.
        """
        size_bytes = sum(path.stat().st_size for path in files)
        cpu_s = self.limits.cpu_s + size_bytes * self.limits.cpu_s_per_megabyte // 1_000_000
        wall_s = 60.0 + 10 * cpu_s  # of a machine that does much else
        try:
            return self.exchange(
                operation, arguments, files, read, cpu_s=cpu_s, wall_s=wall_s, max_bytes=max_bytes, target=target
            )
        except ReaderError as error:
            if error.kind == "memory":
                raise self._too_dear(sequence_number, cpu_s, "more memory needed") from None
            raise _slice_error_of(error, sequence_number) from None
        except ProcessKilledError as failure:
            raise UnavailableError("the reader of slices was ended by SIGKILL; try again") from failure
        except EngineFailureError as failure:
            raise self._too_dear(sequence_number, cpu_s, failure.message) from failure
        except LimitExceededError as exceeded:
            raise self._too_dear(sequence_number, cpu_s, str(exceeded)) from exceeded

    def exchange(
        self,
        operation: str,
        arguments: dict[str, Any],
        files: Sequence[Path],
        read: Callable[[Any, bytes], _Found],
        *,
        cpu_s: int,
        wall_s: float,
        max_bytes: int = 0,
        target: BinaryIO | None = None,
    ) -> _Found:
        """Ask for one thing, as ``ask`` does, for at most ``cpu_s`` of processor time and ``wall_s`` altogether.

        Raises:
            ReaderError: What the program says of the files.
            EngineFailureError: It ended, or its answer makes no sense.
            LimitExceededError: It costs more than the limits allow.
            MalformedError: A file is no plain file.
            SandboxUnavailableError: See ``start``.
        """
        with ExitStack() as opened:
            descriptors = [_open(path, opened) for path in files]
            size_bytes = sum(os.fstat(each).st_size for each in descriptors)
            process = self._process or self._start()
            # The program keeps its time itself, by the kernel; the watch is for one that a file has taken over. What
            # is mapped of the files counts as memory there.
            process.allow(cpu_s=2 * cpu_s + 10, memory_bytes=self.limits.memory_bytes + size_bytes + _BESIDE_BYTES)
            try:
                answer = ConfinedProgram(process).ask(
                    operation,
                    {"cpu_s": cpu_s, **arguments},
                    wall_s=wall_s,
                    files=descriptors,
                    max_bytes=max_bytes,
                    target=target,
                    max_target_bytes=self.limits.written_bytes,
                )
                return read(answer.header["result"], answer.body)
            except ReportedError as reported:
                raise _reader_error_of(reported.fields, process.log) from None
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as nonsense:
                self.close()
                raise EngineFailureError("an answer that makes no sense", log=process.log) from nonsense
            finally:
                if not process.is_running:
                    self.close()

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
        given = [Mount(folder, f"/runtime/ours/{name}") for name, folder in self._list_plug_ins()]
        profile = profile_of_reader(_PACKAGES, *given, has_filter=Layer.FILTER not in missing)
        limits = Limits(memory_bytes=self.limits.memory_bytes, cpu_s=_LIFETIME_CPU_S, output_bytes=0)
        command = command_of_reader(self.program, limits)
        process = self._process = kind(replace(profile, holds_files=True), command, limits)
        if self._is_stopped:  # who stopped it may have looked just before
            process.stop()
        return process

    def _list_plug_ins(self) -> tuple[tuple[str, Path], ...]:
        package = self.program.partition(".")[0]
        return () if package == PROGRAM.partition(".")[0] else find_packages([package])

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


def _reader_error_of(fields: Any, log: str) -> ReaderError | EngineFailureError:
    try:
        where, expected, found = (None if fields[name] is None else str(fields[name]) for name in _DETAILS)
        return ReaderError(str(fields["kind"]), str(fields["what"]), where, expected, found)
    except (LookupError, TypeError):
        return EngineFailureError("an answer that makes no sense", log=log)


def _slice_error_of(error: ReaderError, sequence_number: int | None) -> OdfError:
    if error.kind == "rejected":
        return RejectedError(error.what, sequence_number=sequence_number, expected=error.expected, found=error.found)
    if error.kind == "malformed":
        return MalformedError(error.what, where=error.where, expected=error.expected, found=error.found)
    return UnsupportedError("slice", found=error.found)
