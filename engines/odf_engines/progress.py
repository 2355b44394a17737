"""Progress of a guest while it works: how many records it has read, or how often its engine said that it works.

A guest reports at most once in ``PROGRESS_EACH_S``; ``confined.program`` receives it, and believes neither how often it
comes nor what it is.

Source: clauses ENGINE-5, ENGINE-29 and ADDED-7 in ``spec/extensions``.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

PROGRESS_EACH_S: Final = 1.0
"""How often a guest reports its progress at most."""

_REPORTED: Final[ContextVar[Callable[[int], None]]] = ContextVar("told")


@contextmanager
def telling(report: Callable[[int], None]) -> Iterator[None]:
    """Let ``report_count`` report while the block runs: at first, then once in ``PROGRESS_EACH_S``."""
    last_s = -math.inf

    def tell(count: int) -> None:
        nonlocal last_s
        if (now_s := time.monotonic()) - last_s >= PROGRESS_EACH_S:
            last_s = now_s
            report(count)

    token = _REPORTED.set(tell)
    try:
        yield
    finally:
        _REPORTED.reset(token)


def report_count(count: int) -> None:
    """Report how many records were read so far; cheap, and nothing outside of a guest."""
    if (tell := _REPORTED.get(None)) is not None:
        tell(count)
