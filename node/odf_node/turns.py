"""Taking turns: work that anybody may ask for and that fills the machine is done once at a time, or a few times."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from odf_node.ports.errors import TooManyWaitingError
from odf_protocol.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How many have their turn at once, and how many wait; of one caller, half of these."""

    at_once: int
    waiting: int


class FairTurns:
    """A few at a time; callers that wait have their turns round robin, however often each asked. For one loop."""

    def __init__(self, read_limits: Callable[[], TurnLimits]) -> None:
        self._read_limits = read_limits
        self._running = 0
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
        if self._running >= limits.at_once and (waiting >= limits.waiting or len(own) >= max(1, limits.waiting // 2)):
            raise TooManyWaitingError(waiting)
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(given)
        self._give()
        return Turn(self, given)

    def close(self) -> None:
        """Turn away whoever waits; who has a turn keeps it."""
        self._is_closed = True
        for given in (given for queue in self._waiting.values() for given in queue if not given.done()):
            given.set_exception(UnavailableError("the node is stopping"))
            given.exception()  # whoever never waits for it need not hear of it
        self._waiting.clear()

    def end(self, given: "asyncio.Future[None]") -> None:
        """Give the turn of one who is done, or waits no longer, to the next."""
        if not given.done():
            given.cancel()
        elif not given.cancelled() and given.exception() is None:
            self._running -= 1
        self._give()

    def _give(self) -> None:
        while self._waiting and self._running < self._read_limits().at_once:
            caller, queue = next(iter(self._waiting.items()))
            del self._waiting[caller]
            given = queue.popleft()
            if queue:
                self._waiting[caller] = queue
            if not given.done():
                self._running += 1
                given.set_result(None)


class Turn:
    """A place in the queue; an asynchronous context manager."""

    def __init__(self, turns: FairTurns, given: "asyncio.Future[None]") -> None:
        self._turns = turns
        self._given = given

    async def __aenter__(self) -> None:
        """Wait for the turn.

        Raises:
            UnavailableError: Nobody has a turn any more.
        """
        try:
            await asyncio.shield(self._given)
        except BaseException:
            self._turns.end(self._given)
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._turns.end(self._given)
