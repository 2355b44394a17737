"""Readers of slices that stand ready: forked from a process that has loaded what they need, before it has threads.

A reader that is started anew loads for some tenths of a second of processor time. A worker of the fork server has all
of it loaded, and can be forked as long as it has one thread. So it forks its readers first: children like those that
are started anew, under the same limits, which end with it, whether they were used or not.

Source: clauses HAND-9 in ``spec/daemon.md`` and ROWS-6 in ``spec/extensions/acceptance.md``.
"""

import contextlib
import os
import signal
import sys
from collections import deque
from threading import Lock
from typing import Final, NoReturn

_MALLOC_OPTIONS: Final = {-3: 8 * 1024 * 1024, -1: 64 * 1024 * 1024}
"""M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of mallopt(3), as readers that are started anew get them from variables."""


class ReadyReader:
    """A forked reader, with what ``SliceProcess`` uses of ``subprocess.Popen``."""

    def __init__(self, pid: int, requests: int, answers: int) -> None:
        """Make it of the process and this side's ends of its standard input and output."""
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = os.fdopen(requests, "wb")
        self.stdout = os.fdopen(answers, "rb")
        self._waiting = Lock()

    def poll(self) -> int | None:
        """Say how it ended; None while it runs."""
        self._wait(os.WNOHANG)
        return self.returncode

    def kill(self) -> None:
        """End it; it is waited for by ``communicate``."""
        with self._waiting:  # the number of a process that was waited for may be another's
            if self.returncode is None:
                os.kill(self.pid, signal.SIGKILL)

    def communicate(self) -> None:
        """Close its input and wait for its end."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        with self.stdout:
            while self.stdout.read(1 << 16):
                pass
        self._wait(0)

    def _wait(self, options: int) -> None:
        with self._waiting:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, options)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)


_ready: deque[ReadyReader] = deque()


def fork_readers(count: int, memory_bytes: int) -> None:
    """Fork readers with this much memory each; the calling thread is the only one, and lives as long as the process.

    Where one cannot be forked there are fewer.
    """
    with contextlib.suppress(OSError):
        for _ in range(count):
            _ready.append(_fork_reader(memory_bytes))


def find_ready_reader() -> ReadyReader | None:
    """Give a reader to whoever ends it; None where no more stand ready."""
    while _ready:
        reader = _ready.popleft()
        if reader.poll() is None:
            return reader
        reader.communicate()
    return None


def end_readers() -> None:
    """End the readers that nobody needed."""
    while _ready:
        reader = _ready.popleft()
        reader.kill()
        reader.communicate()


def _fork_reader(memory_bytes: int) -> ReadyReader:
    parent_id = os.getpid()
    pipes = (*os.pipe(), *os.pipe())
    requests, our_requests, our_answers, answers = pipes
    try:
        pid = os.fork()
    except OSError:
        for each in pipes:
            os.close(each)
        raise
    if pid == 0:
        _become_reader(requests, answers, memory_bytes, parent_id)
    os.close(requests)
    os.close(answers)
    return ReadyReader(pid, our_requests, our_answers)


def _become_reader(requests: int, answers: int, memory_bytes: int, parent_id: int) -> NoReturn:
    """Be the program ``slice_worker`` on these descriptors, without anything else of the process that was forked."""
    code = 1
    try:
        import ctypes

        from odf_node.rows import slice_worker

        os.setsid()
        os.dup2(requests, 0)
        os.dup2(answers, 1)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        os.closerange(3, max(requests, answers, nothing, *map(int, os.listdir("/proc/self/fd"))) + 1)  # noqa: PTH208
        for name, value in _MALLOC_OPTIONS.items():
            ctypes.CDLL(None).mallopt(name, value)
        sys.stdin, sys.stdout = os.fdopen(0, "r"), os.fdopen(1, "w")
        sys.stderr = os.fdopen(2, "w")
        slice_worker.serve(memory_bytes, parent_id)
        code = 0
    finally:
        os._exit(code)
