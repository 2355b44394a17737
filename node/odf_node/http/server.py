"""The application and how it is run: bind, say so, serve, and stop in order (EX-1, EX-23)."""

import asyncio
import errno
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from odf_node.exchange import limits
from odf_node.exchange.limits import (
    KEEPALIVE_S,
    MAX_CONCURRENT_REQUESTS,
    MAX_HEADER_FIELD_BYTES,
    MAX_HEADERS,
    MAX_PACK_BYTES,
    MAX_REQUEST_LINE_BYTES,
)
from odf_node.http import exchange, health, push, simple_protocol
from odf_node.http.access_log import LOGGER, JsonAccessLogger, log_to, write_line
from odf_node.http.middleware import DRAINING, RequestGate, answer_errors
from odf_node.http.push_registry import PUSHES, PushRegistry
from odf_node.http.served_node import NODE, ServedNode
from odf_node.ports.peer_errors import AddressInUseError

GRACE_S: Final = 10.0
"""How long requests may go on after the node was told to stop.  # guess: supervisors kill after 10 to 90 s"""


@dataclass(frozen=True, slots=True)
class ListeningAddress:
    """Where the node can be reached; ``port`` is the real one when 0 was asked for."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The address as others write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def create_app(
    node: ServedNode, *, max_requests: int = MAX_CONCURRENT_REQUESTS, push_grace_s: float = GRACE_S
) -> web.Application:
    """Join all routes on one node."""
    app = web.Application(
        middlewares=[answer_errors, RequestGate(max_requests).__call__], client_max_size=MAX_PACK_BYTES
    )
    app[NODE] = node
    app[DRAINING] = []
    # Fixed paths first: /datasets/... is no dataset's.
    health.add_routes(app)
    exchange.add_routes(app)
    push.add_routes(app)
    simple_protocol.add_routes(app)

    async def pushes(_: web.Application) -> AsyncIterator[None]:
        app[PUSHES] = PushRegistry(node)
        yield
        await app[PUSHES].close(push_grace_s)

    app.cleanup_ctx.append(pushes)
    return app


def make_runner(app: web.Application, *, grace_s: float = GRACE_S) -> web.AppRunner:
    """Put the application behind the limits of connections and headers."""
    return web.AppRunner(
        app,
        access_log_class=JsonAccessLogger,
        access_log=LOGGER,
        keepalive_timeout=KEEPALIVE_S,
        max_line_size=MAX_REQUEST_LINE_BYTES,
        max_field_size=MAX_HEADER_FIELD_BYTES,
        max_headers=MAX_HEADERS,
        shutdown_timeout=grace_s,
    )


async def listen(runner: web.AppRunner, host: str, port: int) -> asyncio.Server:
    """Open the port; connections beyond the limit are closed at once, so that files can always be opened.

    Raises:
        OSError, OverflowError: The address cannot be listened on.
    """
    server = runner.server
    if server is None:
        raise RuntimeError("the runner is set up before it listens")

    def accept() -> asyncio.BaseProtocol:
        return _TurnedAway() if len(server.connections) >= limits.MAX_CONNECTIONS else server()

    return await asyncio.get_running_loop().create_server(accept, host, port, reuse_address=True)


async def serve(
    node: ServedNode,
    *,
    host: str,
    port: int,
    on_ready: Callable[[ListeningAddress], None],
    stop: asyncio.Event | None = None,
    grace_s: float = GRACE_S,
) -> None:
    """Serve until SIGTERM, SIGINT or ``stop``, then end what runs within ``grace_s`` seconds.

    Args:
        node: What to serve.
        host: Address to listen on.
        port: Port to listen on; 0 takes any free one.
        on_ready: Called once the port is open.
        stop: Set to end serving from inside the process, without signals.
        grace_s: Limit for requests and verifications that run when the node is told to stop.

    Raises:
        AddressInUseError: The address cannot be listened on.
    """
    stop = stop or asyncio.Event()
    app = create_app(node, push_grace_s=grace_s)
    runner = make_runner(app, grace_s=grace_s)
    handler = log_to()
    listened = False
    try:
        await runner.setup()
        try:
            listener = await listen(runner, host, port)
        except (OSError, OverflowError) as error:
            raise AddressInUseError(host, port, _reason(error)) from error
        address = ListeningAddress(host, listener.sockets[0].getsockname()[1])
        listened = True
        write_line("listening", url=address.url)
        try:
            with _stop_signals(stop):
                on_ready(address)
                await stop.wait()
            app[DRAINING].append("stopping")
            write_line("stopping", grace_s=grace_s)
        finally:
            listener.close()
    finally:
        await runner.cleanup()
        if listened:
            write_line("stopped")
        LOGGER.removeHandler(handler)


class _TurnedAway(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return "another program uses it" if getattr(error, "errno", None) == errno.EADDRINUSE else text


@contextmanager
def _stop_signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    taken = []
    # Only the main thread of a process can take signals; elsewhere ``stop`` is the way.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
            taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
