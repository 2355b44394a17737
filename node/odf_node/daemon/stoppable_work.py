"""Work of a daemon's thread with a node of its own, which any other thread can end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import TypeVar

from odf_node.composition import Node

Result = TypeVar("Result")


class StoppableWork:
    """One piece of work; its node has engines of its own, so that ending them ends nothing else.

    Args:
        open_node: Opens a node on the home.
    """

    def __init__(self, open_node: Callable[[], Node]) -> None:
        self._open_node = open_node
        self._lock = threading.Lock()
        self._is_stopped = False
        self._end: Callable[[], None] | None = None

    def run(self, work: Callable[[Node], Awaitable[Result]]) -> Result:
        """Do it in this thread, once.

        Raises:
            CancelledError: It was stopped; or what stopped engines make of it, if they notice first.
        """
        return asyncio.run(self._run(work))

    def stop(self) -> None:
        """End it soon, whether it has begun or not: what it has not committed is dropped."""
        with self._lock:
            if not self._is_stopped and self._end is not None:
                self._end()
            self._is_stopped = True

    async def _run(self, work: Callable[[Node], Awaitable[Result]]) -> Result:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with closing(self._open_node()) as node:
            engines = node.engines  # made here, so that stopping it also stops engines that are only about to start

            def end() -> None:
                engines.stop()
                loop.call_soon_threadsafe(task.cancel)

            with self._lock:
                self._end = end
                if self._is_stopped:
                    end()
            try:
                return await work(node)
            finally:
                with self._lock:
                    self._end = None  # the loop is about to end, so nobody may call into it any more
