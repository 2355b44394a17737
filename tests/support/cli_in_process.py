"""The command line in this process: the real ``main``, with an environment, streams and an exit code of its own.

A command spends most of its time on starting Python and reading modules. Where a process of its own is not what a test
is about, the same words run here: arguments, files, sockets, databases and engines are those of any command.
"""

import asyncio
import io
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, TextIO

from odf_node.cli.main import main
from odf_node.cli.stopping import SIGNALS, exit_code_of_signal

_OF_THE_INTERPRETER = ("LANG", "LC_", "MALLOC", "PYTHON", "TZ")
"""What an interpreter reads when it starts; another value needs a process of its own."""

_STOPPED = {exit_code_of_signal(number) for number in SIGNALS}


def can_run_here(environment: Mapping[str, str]) -> bool:
    """Say whether a command may run in this process: in the main thread, for its signals, and outside event loops."""
    if threading.current_thread() is not threading.main_thread() or _is_in_loop():
        return False
    names = {*environment, *os.environ}
    return all(environment.get(n) == os.environ.get(n) for n in names if n.startswith(_OF_THE_INTERPRETER))


def run_here(words: Sequence[str], environment: Mapping[str, str], given: bytes) -> tuple[int, bytes, bytes]:
    """Run a command to its end.

    Args:
        words: What follows ``odf-node``.
        environment: All of its environment.
        given: Its standard input.

    Returns:
        Exit code, standard output, standard error.
    """
    with ExitStack() as stack:
        files = {name: stack.enter_context(tempfile.TemporaryFile()) for name in ("stdin", "stdout", "stderr")}
        files["stdin"].write(given)
        files["stdin"].seek(0)
        with _streams(files), _environment(environment):
            code = _run(words)
        results = []
        for name in ("stdout", "stderr"):
            files[name].seek(0)
            results.append(files[name].read())
    if code in _STOPPED:
        # Whoever runs the tests wants to stop all of them.
        raise KeyboardInterrupt
    return code, results[0], results[1]


def _run(words: Sequence[str]) -> int:
    try:
        return main(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1


@contextmanager
def _streams(files: "Mapping[str, BinaryIO | tempfile._TemporaryFileWrapper[bytes]]") -> Iterator[None]:
    before = {name: getattr(sys, name) for name in files}
    # Descriptors of their own: a command may put something else in the place of one.
    streams: dict[str, TextIO] = {
        name: io.TextIOWrapper(
            os.fdopen(os.dup(file.fileno()), "rb" if name == "stdin" else "wb"),
            encoding="utf-8",
            errors="backslashreplace" if name == "stderr" else "strict",
            line_buffering=name == "stderr",
        )
        for name, file in files.items()
    }
    try:
        for name, stream in streams.items():
            setattr(sys, name, stream)
        yield
    finally:
        for name, stream in before.items():
            setattr(sys, name, stream)
        for stream in streams.values():
            stream.close()


@contextmanager
def _environment(environment: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(environment)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
