"""A sandboxed process: bytes in and out, watched, and killed when it goes too far.

States: *running* until the process ends by itself, ``kill`` is called, or the watch sees a limit crossed; then
*ended*, for good, with the limit or the exit code as the reason.

Source: clauses SANDBOX-8 to SANDBOX-10 in ``spec/extensions/sandbox.md``.
"""

import contextlib
import os
import re
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.sandbox.bubblewrap import find_bubblewrap
from odf_engines.sandbox.disk import WatchedFolder
from odf_engines.sandbox.profile import Profile, build_command
from odf_engines.sandbox.resources import (
    MAX_DESCRIPTORS,
    Activity,
    CpuMeter,
    LastingExcess,
    activity_of,
    read_process_file,
    usage_of,
)
from odf_engines.sandbox.system_calls import open_filter

_WATCH_INTERVAL_S = 0.2  # guess: at 1 GB/s a process overshoots a limit by 200 MB, which the machine must bear anyway
_IDLE_INTERVAL_S = 2.0  # guess: between two requests nothing is asked of it; each look costs a millisecond
_LONGEST_PAUSE_S = 5.0  # guess: between two whole looks at a process that does not run
_LONGEST_IDLE_PAUSE_S = 10.0  # guess: as above, between two requests
_IDLE_TICKS = 20  # as much as one core can run from one look to the next during a request
_CPU_USED_UP = (128 + signal.SIGXCPU, -signal.SIGXCPU)  # as bubblewrap passes it on, and without one
_KILLED = (128 + signal.SIGKILL, -signal.SIGKILL)
_ABORTED = (128 + signal.SIGABRT, -signal.SIGABRT)
_NO_MEMORY = re.compile(
    r"^memory allocation of (\d+) bytes failed", re.MULTILINE
)  # rust_oom of Rust's library, then abort
_LOG_BYTES = 64 * 1024  # guess: the end of a Java stack trace
_STATED_CHARACTERS = 500  # guess: a path of the longest kind that people have, and what is wrong with it
_READ_BYTES = 64 * 1024
_END_GRACE_S = 5.0  # guess: a warm Spark ends in about half a second


class ProcessKilledError(EngineFailureError):
    """A process that ended by SIGKILL, which nothing here sent."""


class SandboxedProcess:
    """One sandbox with one program in it.

    Args:
        profile: What the sandbox contains.
        program: Path inside the sandbox, and arguments.
        limits: Kept by a watch from outside; ``wall_s`` only by ``ask``.
        writable: Folders of the host that the program can write to; their size is watched.

    Raises:
        SandboxUnavailableError: Isolation does not work on this machine.
    """

    is_sandbox = True  # and not a place that somebody else has confined

    def __init__(self, profile: Profile, program: Sequence[str], limits: Limits, writable: Sequence[Path] = ()) -> None:
        self._limits = limits
        self._writable = [WatchedFolder(folder, limits.output_bytes) for folder in writable]
        self._crossed: LimitExceededError | None = None
        self._cpu = CpuMeter()
        self._memory, self._descriptors = LastingExcess(limits.memory_bytes), LastingExcess(MAX_DESCRIPTORS)
        self._log: deque[bytes] = deque()
        self._log_size = 0
        self._pending = bytearray()
        self._ended = threading.Event()
        self._woken = threading.Event()
        self._is_asked = True  # until it says that it is ready
        self._files: socket.socket | None = None  # its standard input, where open files go with what is asked
        started: Future[subprocess.Popen[bytes]] = Future()
        watch = threading.Thread(
            target=self._start_and_watch, args=(started, profile, program), name="engine watch", daemon=True
        )
        watch.start()
        self._process = started.result()
        self._stdin = cast("IO[bytes]", self._process.stdin or cast("socket.socket", self._files).makefile("wb", 0))
        os.set_blocking(self._stdin.fileno(), False)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        end, no_more_log = os.pipe()
        self._no_more_log = os.fdopen(no_more_log, "wb")
        log = threading.Thread(target=self._keep_log, args=(os.fdopen(end, "rb"),), name="engine log", daemon=True)
        log.start()
        self._threads = [log, watch]

    @property
    def is_running(self) -> bool:
        """Whether the process can still be asked."""
        return self._process.poll() is None and self._crossed is None

    @property
    def spent_cpu_s(self) -> float:
        """Processor time of all its processes up to the last look, in seconds."""
        return self._cpu.spent_s

    @property
    def held_bytes(self) -> int:
        """Memory of all its processes now."""
        return usage_of(self._process.pid).memory_bytes

    @property
    def process_id(self) -> int:
        """Of the outermost process, on the host."""
        return self._process.pid

    @property
    def log(self) -> str:
        """The end of what the process wrote to its standard error; untrusted."""
        return b"".join(self._log).decode("utf-8", "replace")

    @property
    def exit_code(self) -> int | None:
        """How the outermost process ended, as ``subprocess`` has it; None while it runs."""
        return self._process.poll()

    def allow(self, *, cpu_s: int, memory_bytes: int) -> None:
        """Bound what is asked next by itself: processor time from now on, and memory."""
        self._limits = replace(self._limits, cpu_s=cpu_s + int(self.spent_cpu_s), memory_bytes=memory_bytes)
        self._memory = LastingExcess(memory_bytes)

    def send(self, data: bytes, wall_s: float, files: Sequence[int] = ()) -> None:
        """Write bytes, for at most ``wall_s`` seconds; on any failure the process is killed.

        ``files`` are descriptors that go with it, to a program whose profile says that it holds files.

        Raises:
            LimitExceededError: Time is up, or the watch stopped the process.
            EngineFailureError: The process ended, or reads no more.
        """
        self._is_asked = True
        self._woken.set()
        deadline = time.monotonic() + wall_s
        left = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            while left:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.kill()
                    raise LimitExceededError("wall_s", allowed=wall_s)
                try:
                    if files:
                        assert self._files is not None
                        sent, files = socket.send_fds(self._files, [left], list(files)), ()
                    else:
                        sent = os.write(self._stdin.fileno(), left)
                    left = left[sent:]
                except BlockingIOError:
                    continue
                except OSError as error:
                    self.kill()
                    raise self._reason("the engine ended before it was asked") from error

    def receive(self, count: int, wall_s: float) -> bytes:
        """Read so many bytes, for at most ``wall_s`` seconds; on any failure the process is killed.

        Raises:
            LimitExceededError: Time is up, or the watch stopped the process.
            EngineFailureError: The process ended.
        """
        self._is_asked = True
        deadline = time.monotonic() + wall_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while len(self._pending) < count:
                # Also when time is up: who waits may itself have been stopped, and the answer be there.
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.kill()
                    raise LimitExceededError("wall_s", allowed=wall_s)
                chunk = os.read(self._stdout.fileno(), _READ_BYTES)
                if not chunk:
                    self.kill()
                    raise self._reason("the engine ended without an answer")
                self._pending += chunk
        found = bytes(self._pending[:count])
        del self._pending[:count]
        return found

    def note_answered(self) -> None:
        """Take in that nothing is asked of it until the next ``send``: it is looked at more rarely."""
        self._is_asked = False

    def close(self) -> None:
        """Ask the process to end by closing its input, then kill it; safe to repeat."""
        with contextlib.suppress(OSError):
            self._close_input()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_END_GRACE_S)
        self.kill()

    def stop(self) -> None:
        """Tell every process of the sandbox to end at once and do not wait; from any thread, safe to repeat."""
        outermost = self._process.pid
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                # What it has just begun is in a session of its own, and may not have asked yet to die with it. While
                # it is stopped it begins no more, and no number of a child becomes another's.
                os.killpg(outermost, signal.SIGSTOP)
                with contextlib.suppress(OSError):
                    for child in read_process_file(f"/proc/{outermost}/task/{outermost}/children").split():
                        os.kill(int(child), signal.SIGKILL)
                os.killpg(outermost, signal.SIGKILL)

    def kill(self) -> None:
        """End every process of the sandbox at once and wait until they are gone; safe to repeat.

        The first process of the sandbox dies with the one that is killed here, and with it its process namespace.
        """
        self.stop()
        self._process.wait()
        self._ended.set()
        self._woken.set()
        if not self.is_sandbox:
            self._no_more_log.close()  # what left its group lives on, and holds what the log is read from
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        with contextlib.suppress(OSError):
            self._close_input()
        for stream in (self._stdout, self._process.stderr, self._no_more_log):
            with contextlib.suppress(OSError):
                cast("IO[bytes]", stream).close()

    def _close_input(self) -> None:
        self._stdin.close()
        if self._files is not None:
            self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _start_and_watch(
        self, started: "Future[subprocess.Popen[bytes]]", profile: Profile, program: Sequence[str]
    ) -> None:
        """Start the sandbox in the thread of its watch: it ends with the thread that started it (PR_SET_PDEATHSIG)."""
        try:
            self._process = self._start(profile, program)
        except BaseException as error:  # noqa: BLE001 - raised where it was asked for
            started.set_exception(error)
            return
        started.set_result(self._process)
        self._watch()

    def _start(self, profile: Profile, program: Sequence[str]) -> "subprocess.Popen[bytes]":
        descriptor = None
        if profile.has_filter:
            descriptor = open_filter(shares_network=profile.has_network, holds_files=profile.holds_files)
        try:
            command = build_command(find_bubblewrap(), profile, program, filter_descriptor=descriptor)
            return self._popen(command, profile, env={}, pass_fds=() if descriptor is None else (descriptor,))
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _popen(self, command: Sequence[str], profile: Profile, **options: Any) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        with contextlib.ExitStack() as theirs:
            if profile.holds_files:
                self._files, end = socket.socketpair()
                options["stdin"] = theirs.enter_context(end)
            options = {"stdin": pipe, "stdout": pipe, "stderr": pipe, **options}
            started: subprocess.Popen[bytes] = subprocess.Popen(
                list(command), start_new_session=True, close_fds=True, **options
            )
            return started

    def _reason(self, otherwise: str) -> LimitExceededError | EngineFailureError:
        """Say why the process ended: what the watch saw, or what the kernel says; else only with which code.

        The kernel sends SIGXCPU at the limit of processor time and for nothing else. SIGKILL comes from many: a machine
        without memory, an operator; and a program that ignores SIGXCPU gets it a second later, if the watch did not see
        it first. Nothing tells these apart, as nobody waits for the process that knows how much it had used.
        """
        code = self._process.wait()
        if self._crossed is not None:
            return self._crossed
        if code in _CPU_USED_UP:
            return LimitExceededError("cpu_s", allowed=self._limits.cpu_s)
        log = self.log
        if code in _ABORTED and (asked := _NO_MEMORY.search(log)):
            return LimitExceededError("memory_bytes", allowed=self._limits.memory_bytes, found=int(asked[1]))
        # Bubblewrap speaks before anything runs inside; its line says what this machine does not let it do.
        stated = f": {log.splitlines()[0][:_STATED_CHARACTERS]}" if log.startswith("bwrap: ") else ""
        kind = ProcessKilledError if code in _KILLED else EngineFailureError
        return kind(f"{otherwise} (exit code {code}){stated}", log=log)

    def _keep_log(self, end: IO[bytes]) -> None:
        """Read until the last process that can write has ended, or ``end`` has and nothing more is there."""
        stream = cast("IO[bytes]", self._process.stderr)
        with end, selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            selector.register(end, selectors.EVENT_READ)
            while any(key.fileobj is stream for key, _ in selector.select()):
                chunk = os.read(stream.fileno(), _READ_BYTES)
                if not chunk:
                    return
                self._log.append(chunk)
                self._log_size += len(chunk)
                while self._log_size - len(self._log[0]) > _LOG_BYTES:
                    self._log_size -= len(self._log.popleft())

    def _watch(self) -> None:
        looked_at, activity = 0.0, Activity()
        try:
            while not self._has_ended_after_pause():
                # Who has not run since the last whole look has filled nothing, and who waits for a request and has
                # hardly run hardly anything: an engine that waits costs next to nothing.
                now, is_asked = time.monotonic(), self._is_asked
                found = activity_of(self._process.pid)
                hardly, longest_s = (0, _LONGEST_PAUSE_S) if is_asked else (_IDLE_TICKS, _LONGEST_IDLE_PAUSE_S)
                if found.has_hardly_run(activity, hardly) and now - looked_at < longest_s:
                    continue
                activity, looked_at = found, now
                self._crossed = self._find_crossed()
                if self._crossed is not None:
                    return
        finally:
            # Also if watching fails: an unwatched process must not go on.
            self.stop()

    def _has_ended_after_pause(self) -> bool:
        """Wait for the next look: soon while a request runs, at once when one comes."""
        self._woken.wait(_WATCH_INTERVAL_S if self._is_asked else _IDLE_INTERVAL_S)
        self._woken.clear()
        return self._ended.is_set() or self._process.poll() is not None

    def _find_crossed(self) -> LimitExceededError | None:
        usage = usage_of(self._process.pid)
        self._cpu.add(usage)
        if usage.processes > self._limits.processes:
            return LimitExceededError("processes", allowed=self._limits.processes, found=usage.processes)
        if self._memory.is_crossed(usage.memory_bytes):
            return LimitExceededError("memory_bytes", allowed=self._limits.memory_bytes, found=usage.memory_bytes)
        if (spent_s := self._cpu.spent_s) > self._limits.cpu_s:
            return LimitExceededError("cpu_s", allowed=self._limits.cpu_s, found=round(spent_s, 1))
        if self._descriptors.is_crossed(usage.descriptors):
            return LimitExceededError("descriptors", allowed=MAX_DESCRIPTORS, found=usage.descriptors)
        for folder in self._writable:
            used = folder.usage(usage.process_ids)
            if used.is_flooded:
                return LimitExceededError("output_files", allowed=used.entries - 1, found=used.entries)
            if used.size_bytes > self._limits.output_bytes:
                return LimitExceededError("output_bytes", allowed=self._limits.output_bytes, found=used.size_bytes)
        return None
