"""Taking turns: work that anybody may ask for and that fills the machine is done once at a time, or a few times."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from odf_engines.errors import LimitExceededError
from odf_node.records.errors import TooManyWaitingError
from odf_protocol.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How many have their turn at once, and how many wait, of one caller half of these.

    ``own`` is how many of one caller have their turn at once; None: as many as there are.
    """

    at_once: int
    waiting: int
    own: int | None = None

    @property
    def max_of_one(self) -> int:
        """How many of one caller have their turn at once."""
        return self.at_once if self.own is None else self.own


class FairSemaphore:
    """A few at a time; callers that wait have their turns round robin, however often each asked. For one loop."""

    def __init__(self, read_limits: Callable[[], TurnLimits]) -> None:
        self._read_limits = read_limits
        self._running = 0
        self._running_of: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By caller; who was served last is the last one."""
        self._is_closed = False

    @property
    def running(self) -> int:
        """How many have their turn now."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many wait for theirs."""
        return sum(map(len, self._waiting.values()))

    def ask(self, caller: str) -> "Turn":
        """Take a place in the queue; the result is entered to wait for the turn, and left when it is over.

        Raises:
            TooManyWaitingError: As many wait as may, of this caller or of all.
            UnavailableError: Nobody has a turn any more.
        """
        if self._is_closed:
            raise UnavailableError("the node is stopping")
        limits, own = self._read_limits(), self._waiting.get(caller, ())
        waiting = sum(map(len, self._waiting.values()))
        has_to_wait = self._running >= limits.at_once or self._running_of[caller] >= limits.max_of_one
        if has_to_wait and (waiting >= limits.waiting or len(own) >= max(1, limits.waiting // 2)):
            raise TooManyWaitingError(waiting)
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(given)
        self._give()
        return Turn(self, given, caller)

    def close(self) -> None:
        """Turn away whoever waits; who has a turn keeps it."""
        self._is_closed = True
        for given in (given for queue in self._waiting.values() for given in queue if not given.done()):
            given.set_exception(UnavailableError("the node is stopping"))
            given.exception()  # whoever never waits for it need not hear of it
        self._waiting.clear()

    def end(self, given: "asyncio.Future[None]", caller: str) -> None:
        """Give the turn of one who is done, or waits no longer, to the next."""
        if not given.done():
            given.cancel()
        elif not given.cancelled() and given.exception() is None:
            self._running -= 1
            self._running_of[caller] -= 1
            if not self._running_of[caller]:
                del self._running_of[caller]
        self._give()

    def _give(self) -> None:
        while (caller := self._find_next()) is not None:
            queue = self._waiting.pop(caller)
            given = queue.popleft()
            if queue:
                self._waiting[caller] = queue
            if not given.done():
                self._running += 1
                self._running_of[caller] += 1
                given.set_result(None)

    def _find_next(self) -> str | None:
        """Find the caller who has waited longest of those that may have another turn."""
        limits = self._read_limits()
        if self._running >= limits.at_once:
            return None
        return next((each for each in self._waiting if self._running_of[each] < limits.max_of_one), None)


class Turn:
    """A place in the queue; an asynchronous context manager."""

    def __init__(self, semaphore: FairSemaphore, given: "asyncio.Future[None]", caller: str) -> None:
        self._semaphore = semaphore
        self._given = given
        self._caller = caller

    async def __aenter__(self) -> None:
        """Wait for the turn.

        Raises:
            UnavailableError: Nobody has a turn any more.
        """
        try:
            await asyncio.shield(self._given)
        except BaseException:
            self._semaphore.end(self._given, self._caller)
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._semaphore.end(self._given, self._caller)


Result = TypeVar("Result")


class ShortestFirstSemaphore:
    """Turns for work whose cost nobody knows before: a short one, and a long one for what does not end in it.

    So what is small waits for short turns alone, however much costly work of others, or of its own caller, there is.
    What is ended with its short turn is begun anew in a long one.

    Args:
        short: Of short turns.
        long: Of long ones.
        short_s: How long a short turn is.
    """

    def __init__(self, short: TurnLimits, long: TurnLimits, *, short_s: float) -> None:
        self.short_semaphore = FairSemaphore(lambda: short)
        self.long_semaphore = FairSemaphore(lambda: long)
        self._short_s = short_s

    async def run(
        self, caller: str, work: Callable[[float | None], Awaitable[Result]], *, is_long: bool = False
    ) -> Result:
        """Do work in its turn.

        Args:
            caller: Whose work it is.
            work: Is given how many seconds it has, None for its own limit, and reaches that limit (``wall_s``) beyond.
            is_long: It is known to be; it gets no short turn.

        Raises:
            TooManyWaitingError, UnavailableError: As ``FairSemaphore.ask``.
        """
        if not is_long:
            async with self.short_semaphore.ask(caller):
                try:
                    return await work(self._short_s)
                except LimitExceededError as error:
                    if error.limit != "wall_s":
                        raise
        async with self.long_semaphore.ask(caller):
            return await work(None)

    def close(self) -> None:
        """Turn away whoever waits."""
        self.short_semaphore.close()
        self.long_semaphore.close()
