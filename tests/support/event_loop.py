"""Asynchronous tests without a plugin."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

LIMIT_S = 240.0  # guess: a test of seconds on a machine that is slow and busy


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test in a loop of its own, for a limited time."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(LIMIT_S):
                await test(*arguments, **named)

        asyncio.run(limited())

    return run
