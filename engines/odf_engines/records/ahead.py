"""Work on batches side by side, given in their order.

Arrow lets go of Python's lock while it computes, so a second core is of use to anything that is made of Arrow's
functions: the next batches are worked on while one is written.

Source: ENGINE-16 bounds what is held: a few batches.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Generic, TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")

_MAX_THREADS: Final = 4  # guess: each holds a batch, and one thread writes what all of them make


def cores() -> int:
    """Say how many cores this process may use."""
    return len(os.sched_getaffinity(0))


class Ahead(Generic[_In, _Out]):
    """Applies a function to items in threads; results come in the order of the items.

    Args:
        work: What is done with each item; what it raises, ``put`` or ``finish`` raise.
        take: Gets each result, in the thread that calls ``put`` and ``finish``.
    """

    def __init__(self, work: Callable[[_In], _Out], take: Callable[[_Out], None]) -> None:
        self._work, self._take = work, take
        self._threads = min(cores(), _MAX_THREADS)
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[_Out]] = deque()

    def put(self, item: _In) -> None:
        """Give an item to a thread; where all have enough to do, wait for the oldest result."""
        if self._threads == 1:
            self._take(self._work(item))
            return
        self._pool = self._pool or ThreadPoolExecutor(self._threads)
        self._waiting.append(self._pool.submit(self._work, item))
        while len(self._waiting) > self._threads:
            self._take(self._waiting.popleft().result())

    def finish(self) -> None:
        """Take the results that are left."""
        while self._waiting:
            self._take(self._waiting.popleft().result())

    def close(self) -> None:
        """End the threads; what nobody took is lost."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def iter_ahead(items: Iterable[_Out]) -> Iterator[_Out]:
    """Give the same items, each made by another thread while the one before it is used."""
    if cores() == 1:
        yield from items
        return
    source = iter(items)
    end = object()
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, source, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, source, end)
            yield item  # type: ignore[misc]
