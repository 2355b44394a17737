"""Blocking work of asynchronous code that must not be left behind."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from odf_protocol.errors import OdfError

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


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that says most: one of our tree if there is any, else the first."""
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
