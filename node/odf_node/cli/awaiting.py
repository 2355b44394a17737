"""Asynchronous commands: run to their end, or to the first signal; see ``stopping``."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from odf_node.cli.stopping import SIGNALS, Stopped, let_signals_kill


def finish_or_stop(work: Coroutine[Any, Any, int], stop_engines: Callable[[], None]) -> int:
    """Run asynchronous work to its end, or to the first signal.

    Args:
        work: The command.
        stop_engines: Makes threads that wait for an engine stop waiting.

    Raises:
        Stopped: A signal came; the work has been cancelled and has cleaned up.
    """
    received: list[int] = []

    async def run() -> int:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def stop(number: int) -> None:
            received.append(number)
            for each in taken:
                loop.remove_signal_handler(each)
            let_signals_kill()
            stop_engines()
            task.cancel()

        taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in taken:
            loop.add_signal_handler(number, stop, number)
        try:
            return await task
        finally:
            for number in taken:
                loop.remove_signal_handler(number)

    try:
        return asyncio.run(run())
    except BaseException as error:
        # Whatever the work raised on its way out, the reason that it ended is the signal.
        if received:
            raise Stopped(received[0]) from error
        raise
