"""Work of asynchronous code that must not be left behind: blocking, or many pieces at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from odf_protocol.errors import OdfError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


async def finish_in_thread(work: Callable[[], _Result], *, stop: Callable[[], None] = lambda: None) -> _Result:
    """Run ``work`` in a thread; when the waiting task is cancelled, the work is told to ``stop`` and waited for first.

    It runs in the context of the waiting task, as with ``asyncio.to_thread``.

    For work on something that is closed or reused right after: ``asyncio.to_thread`` would go on with it then.
    """
    future = asyncio.get_running_loop().run_in_executor(None, partial(copy_context().run, work))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait([future])
        # Nobody waits for the result any more; unread, an error would be reported as forgotten.
        if not future.cancelled():
            future.exception()
        raise


async def do_all(work: Callable[[_Item], Awaitable[None]], items: Iterable[_Item], *, at_once: int) -> None:
    """Do the work for each item, ``at_once`` of them at a time; the first failure ends it.

    Raises:
        BaseException: Of several that failed together, the one that says most.
    """
    slots = asyncio.Semaphore(at_once)

    async def do(item: _Item) -> None:
        async with slots:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(do(item))
    except BaseExceptionGroup as failed:
        raise _first_error(failed) from failed


def _first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    leaves: list[BaseException] = []
    pending: list[BaseException] = [group]
    while pending:
        error = pending.pop(0)
        if isinstance(error, BaseExceptionGroup):
            pending.extend(error.exceptions)
        else:
            leaves.append(error)
    # A cancelled or unexpected leaf must not hide behind an ordinary one.
    unexpected = [leaf for leaf in leaves if not isinstance(leaf, OdfError)]
    return (unexpected or leaves)[0]
