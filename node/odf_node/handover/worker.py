"""What a forked worker does: it becomes the command that its client is, runs it, and says how it ended.

Nothing is begun before the client says so: whatever fails until then ends the worker without a word, and the client
does the work by itself.

Source: clauses HAND-3 to HAND-5 in ``spec/daemon.md``.
"""

import atexit
import contextlib
import ctypes
import gc
import io
import os
import signal
import socket
import sys
import threading
import traceback
from dataclasses import dataclass
from typing import Final, NoReturn

from odf_node.acceptance.row_checks import MOST_READERS
from odf_node.cli.main import find_command
from odf_node.handover.likeness import become_like
from odf_node.handover.request import ENDED, GO, READY
from odf_node.rows.ready_readers import end_readers, fork_readers
from odf_node.rows.slice_process import ReadingLimits

GO_S: Final = 20.0  # guess: a client that is stopped or swapped out must not hold a place for long
NEW_OBJECTS: Final = 20_000
"""As in ``odf_node.__main__``."""

_READING: Final = frozenset({"pull", "verify"})
"""Commands that may read slices of others."""
_TELL_WHEN_PARENT_DIES: Final = 1  # Source: prctl(2), PR_SET_PDEATHSIG
_NOT_FLUSHED: Final = 120  # Source: the exit code of Python for standard output that cannot be written


@dataclass(frozen=True, slots=True)
class Job:
    """A command to run, as its client has it."""

    words: list[str]
    environment: dict[str, str]
    client_id: int
    descriptors: list[int]
    """Standard input, output and error, the working folder, the channel to the client."""
    server_id: int


def run(job: Job) -> NoReturn:
    """Become the command; does not return."""
    try:
        channel = _prepare(job)
    except BaseException:  # noqa: BLE001 - a doubt of any kind is the client's to solve; nothing was begun
        os._exit(1)
    if find_command(job.words)[0] in _READING:
        fork_readers(min(MOST_READERS, len(os.sched_getaffinity(0))), ReadingLimits().memory_bytes)
    code = _run_command(job.words)
    end_readers()
    # A client that leaves as soon as it knows the end is not one that wants the work to stop.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # the client may have gone
        channel.sendall(ENDED + bytes([code & 0xFF]))
    os._exit(code & 0xFF)


def _prepare(job: Job) -> socket.socket:
    *streams, folder, channel_descriptor = job.descriptors
    os.setpgid(0, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number, inheritable=True)
        os.close(stream)
    os.fchdir(folder)
    os.close(folder)
    become_like(job.client_id, job.environment)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # After the streams are the client's: from here on the end of the fork server is told, whatever ends it.
    if ctypes.CDLL(None).prctl(_TELL_WHEN_PARENT_DIES, signal.SIGUSR1) or os.getppid() != job.server_id:
        raise OSError("the fork server has ended")
    _open_streams()
    sys.argv = [sys.argv[0], *job.words]
    gc.set_threshold(NEW_OBJECTS)
    gc.enable()
    channel = socket.socket(fileno=channel_descriptor)
    channel.settimeout(GO_S)
    channel.sendall(READY)
    if channel.recv(1) != GO:
        raise OSError("the client has gone")
    channel.settimeout(None)
    return channel


def _open_streams() -> None:
    """Open the streams as an interpreter does that starts on these descriptors.

    Source: ``create_stdio`` of Python's ``pylifecycle.c``.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        like: io.TextIOWrapper = getattr(sys, f"__{name}__")
        number, is_direct = like.fileno(), like.write_through
        raw = os.fdopen(number, f"{mode}b", buffering=0 if is_direct and mode == "w" else -1, closefd=False)
        stream = io.TextIOWrapper(
            raw,
            encoding=like.encoding,
            errors=like.errors,
            newline="\n",
            line_buffering=not is_direct and (name == "stderr" or os.isatty(number)),
            write_through=is_direct,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run_command(words: list[str]) -> int:
    """Run the command to its end, and this process to its last act, as an interpreter does."""
    from odf_node.cli.main import main

    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:  # noqa: BLE001 - as at the end of any interpreter
        traceback.print_exc()
        code = 1
    # What multiprocessing does for its processes: the public end of an interpreter would tear down all modules.
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = _NOT_FLUSHED if stream is sys.stdout else code
    return code
