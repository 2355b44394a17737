"""Taking turns: work that anybody may ask for and that fills the machine is done once at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from odf_node.ports.errors import TooManyWaitingError


class Turns:
    """One at a time; some may wait, and the rest is turned away. For the tasks of one loop."""

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._present = 0
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn, and hold it.

        Raises:
            TooManyWaitingError: Others wait already, as many as may.
        """
        if self._present > self._most_waiting:
            raise TooManyWaitingError(self._most_waiting)
        self._present += 1
        try:
            async with self._turn:
                yield
        finally:
            self._present -= 1
