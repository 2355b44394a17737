"""What a guest says of its progress while it works, before its answer.

Our guests say how many records of a source they have read. ODF's contract has a message that says no more than that
work goes on, which is counted. Our program in the sandbox says either once a second as a line
``{"number": N, "progress": COUNT}``; who reads it believes neither how often it comes nor what it is.

Source: clauses ENGINE-5, ENGINE-29 and ADDED-7 in ``spec/extensions``.
"""

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol, TextIO

from odf_engines.errors import EngineFailureError, LimitExceededError

PROGRESS_EACH_S: Final = 1.0
"""How often a guest speaks of its progress at most."""

_MOST_AT_ONCE: Final = 100  # guess: lines that wait while the host is busy
_MOST_EACH_S: Final = 10.0  # guess: a clock that jumps
_LINE: Final = re.compile(rb'\{"number": ([0-9]{1,18}), "progress": ([0-9]{1,18})\}')


_TOLD: Final[ContextVar[Callable[[int], None]]] = ContextVar("told")


class _Lines(Protocol):
    def receive(self, wall_s: float) -> bytes: ...


def progress_line(number: int, count: int) -> str:
    """Write what a guest says for the ``count``-th time about the request ``number``."""
    return f'{{"number": {number}, "progress": {count}}}'


@contextmanager
def telling(number: int, answers: TextIO) -> Iterator[None]:
    """Let ``tell_count`` be heard by the host while the block runs: at first, then once in ``PROGRESS_EACH_S``."""
    last_s = -math.inf

    def tell(count: int) -> None:
        nonlocal last_s
        if (now_s := time.monotonic()) - last_s >= PROGRESS_EACH_S:
            last_s = now_s
            print(progress_line(number, count), file=answers, flush=True)

    token = _TOLD.set(tell)
    try:
        yield
    finally:
        _TOLD.reset(token)


def tell_count(count: int) -> None:
    """Say how many records were read so far; cheap, and nothing outside of a guest."""
    if (tell := _TOLD.get(None)) is not None:
        tell(count)


def receive_answer(process: _Lines, number: int, wall_s: float, hear: Callable[[int], None]) -> bytes:
    """Read lines until one that is not about progress.

    Raises:
        LimitExceededError: Time is up.
        EngineFailureError: The process ended, or speaks more often than anybody can hear.
    """
    began, said = time.monotonic(), 0
    while True:
        try:
            line = process.receive(began + wall_s - time.monotonic())
        except LimitExceededError as error:
            if error.limit == "wall_s":
                raise LimitExceededError("wall_s", allowed=wall_s) from error
            raise
        found = _LINE.fullmatch(line.strip())
        if found is None or int(found[1]) != number:
            return line
        said += 1
        if said > _MOST_AT_ONCE + _MOST_EACH_S * (time.monotonic() - began):
            raise EngineFailureError(f"the engine said {said} times that it works, and nothing else")
        hear(int(found[2]))
