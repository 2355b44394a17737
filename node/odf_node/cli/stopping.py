"""Ctrl-C and SIGTERM: the command ends soon, its engines at once, and nothing is left half-done.

A blocking command is stopped by an exception in its main thread. An asynchronous one is cancelled, so that each task
waits for the threads it started; what they wait for, an engine, is ended first. A second signal ends the process on
the spot: what was committed stays, what was not never counts, and engines die with their parent.
"""

import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NoReturn

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
        _let_signals_kill()
        raise Stopped(number)

    for number in taken:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, before in taken.items():
            signal.signal(number, before)


def finish_or_stop(work: Coroutine[Any, Any, int], stop_engines: Callable[[], None]) -> int:
    """Run asynchronous work to its end, or to the first signal.

    Args:
        work: The command.
        stop_engines: Makes threads that wait for an engine stop waiting.

    Raises:
        Stopped: A signal came; the work has been cancelled and has cleaned up.
    """
    import asyncio

    received: list[int] = []

    async def run() -> int:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def stop(number: int) -> None:
            received.append(number)
            for each in taken:
                loop.remove_signal_handler(each)
            _let_signals_kill()
            stop_engines()
            task.cancel()

        taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in taken:
            loop.add_signal_handler(number, stop, number)
        try:
            return await task
        finally:
            for number in taken:
                loop.remove_signal_handler(number)

    try:
        return asyncio.run(run())
    except BaseException as error:
        # Whatever the work raised on its way out, the reason that it ended is the signal.
        if received:
            raise Stopped(received[0]) from error
        raise


def _let_signals_kill() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
