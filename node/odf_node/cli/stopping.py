"""Ctrl-C and SIGTERM: the command ends soon, its engines at once, and nothing is left half-done.

A blocking command is stopped by an exception in its main thread. An asynchronous one is cancelled, so that each task
waits for the threads it started; what they wait for, an engine, is ended first. A second signal ends the process on
the spot: what was committed stays, what was not never counts, and engines die with their parent.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_KILLED: Final = 128  # shells report 128 + n for a process that signal n ended (POSIX "Exit Status for Commands")


class Stopped(KeyboardInterrupt):
    """Somebody wants the command to end.

    Attributes:
        number: The signal that said so.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code_of_signal(number: int) -> int:
    """Give the exit code that shells report for a process ended by this signal (Ctrl-C: 130, SIGTERM: 143)."""
    return _KILLED + number


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise ``Stopped`` in the main thread at the first signal; the second one ends the process.

    A signal that was ignored when the program started stays ignored (``nohup``, background jobs of plain shells).
    """
    taken = {number: signal.getsignal(number) for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN}

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        let_signals_kill()
        raise Stopped(number)

    for number in taken:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, before in taken.items():
            signal.signal(number, before)


def let_signals_kill() -> None:
    """Let the next signal end the process on the spot."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
