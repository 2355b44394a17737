"""Work beside the server: what a plug-in of the group ``odf_node.background`` is, and how it begins and ends.

Source: clauses PLUG-1 to PLUG-4 and PLUG-7 in ``spec/plug-ins.md``.
"""

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from odf_node.composition import Node
from odf_node.daemon.repeated_look import RepeatedLook
from odf_node.http.served_node import Live
from odf_node.http.server import ListeningAddress
from odf_node.plug_ins import contained, load_plug_ins
from odf_node.semaphore import FairSemaphore

GROUP: Final = "odf_node.background"

_END_S: Final = 15.0  # guess: what goes on longer than this after the daemon was told to stop ends with the process

Start = Callable[[ListeningAddress, web.Application], None]
"""Called on the event loop once the server listens."""


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """The daemon, for work beside its server.

    Attributes:
        node: Whose home it is.
        live: Settings in force, and metrics.
        stop: Set when the daemon was told to stop.
        verifications: Turns of those whose data are verified here.
        make_tls: Makes what encrypts a further port for the protocol that is named (``h2``). The certificate is that of
            the settings, read again at SIGHUP; None where the settings have none.
        open_beside: Opens another node on the same home, with engines of its own and the settings in force; the caller
            closes it.
    """

    node: Node
    live: Live
    stop: asyncio.Event
    verifications: FairSemaphore
    make_tls: Callable[[str], ssl.SSLContext | None]
    open_beside: Callable[[], Node]


class BackgroundWork(ABC):
    """What goes on beside the server."""

    @abstractmethod
    def open(self, name: str, daemon: RunningDaemon) -> AbstractAsyncContextManager[Start]:
        """Prepare the work before the server listens; left when the server has ended.

        Args:
            name: Of the entry point.
            daemon: What it works on.
        """


@dataclass(frozen=True, slots=True)
class BackgroundService(BackgroundWork):
    """Work with a beginning and an end of its own, such as another port."""

    serve: Callable[[RunningDaemon], AbstractAsyncContextManager[Start]]

    def open(self, name: str, daemon: RunningDaemon) -> AbstractAsyncContextManager[Start]:  # noqa: ARG002 - the contract
        """Prepare the service."""
        return self.serve(daemon)


@dataclass(frozen=True, slots=True)
class RepeatedWork(BackgroundWork):
    """A function of the node that is called again and again, on a thread of its own.

    Attributes:
        each_s: The least rest between the end of a call and the next, in seconds; a call that took much of a processor
            is followed by a longer one.
        run: The function.
    """

    each_s: float
    run: Callable[[Node], None]

    @asynccontextmanager
    async def open(self, name: str, daemon: RunningDaemon) -> AsyncIterator[Start]:
        """Make the thread; it starts when the server listens."""
        repeated = _Repeated(name, self, daemon.node)
        try:
            yield lambda _listening, _app: repeated.start()
        finally:
            await asyncio.to_thread(repeated.end, _END_S)


class _Repeated(RepeatedLook):
    """The thread of a work."""

    def __init__(self, name: str, work: RepeatedWork, node: Node) -> None:
        super().__init__(name, work.each_s, object)
        self._name, self._work, self._node = name, work, node

    def look(self) -> bool:
        """Call the function."""
        with contained(GROUP, self._name):
            self._work.run(self._node)
        return True


@asynccontextmanager
async def background_work(daemon: RunningDaemon) -> AsyncIterator[Start]:
    """Prepare the work of all plug-ins, and end it when left, the last one first.

    Yields:
        What starts it, once the server listens.
    """
    starts: dict[str, Start] = {}
    async with AsyncExitStack() as opened:
        for name, work in load_plug_ins(GROUP, BackgroundWork).items():
            with contained(GROUP, name):
                context = work.open(name, daemon)
                starts[name] = await context.__aenter__()
                opened.push_async_callback(_end, name, context)

        def start(listening: ListeningAddress, app: web.Application) -> None:
            for name, start_one in starts.items():
                with contained(GROUP, name):
                    start_one(listening, app)

        yield start


async def _end(name: str, context: AbstractAsyncContextManager[Start]) -> None:
    with contained(GROUP, name):
        await context.__aexit__(None, None, None)
