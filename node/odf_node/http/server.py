"""The application and how it is run: bind, say so, serve, and stop in order (EX-1, EX-23)."""

import asyncio
import errno
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from aiohttp import web

from odf_node.byte_rate import ByteRate
from odf_node.http import (
    exchange,
    observing,
    row_intake,
    trees,
)
from odf_node.http.access_log import LOGGER, JsonAccessLogger, log_to, write_line
from odf_node.http.bodies import reject_encoded_bodies
from odf_node.http.callers import NONCES, Nonces, identify_caller
from odf_node.http.core_routes import CORE_ROUTES
from odf_node.http.listening import CONNECTIONS, Connections, HttpListener, listen, note_requests
from odf_node.http.middleware import DRAINING, RequestGate, answer_errors, count_requests
from odf_node.http.origins import reject_cross_origin_pages, require_own_name
from odf_node.http.push import RECEIVE_RATE
from odf_node.http.push_registry import PUSHES, PushRegistry
from odf_node.http.quotas import PeerQuotas
from odf_node.http.route_tables import register_routes
from odf_node.http.sending import SEND_RATE
from odf_node.http.served_node import LIVE, NODE, Live, ServedNode
from odf_node.http.uploads import UPLOADS, Uploads
from odf_node.ports.peer_errors import AddressInUseError
from odf_protocol.exchange.limits import (
    KEEPALIVE_S,
    MAX_HEADER_FIELD_BYTES,
    MAX_HEADERS,
    MAX_PACK_BYTES,
    MAX_REQUEST_LINE_BYTES,
)

GRACE_S: Final = 10.0
"""How long requests may go on after the node was told to stop.  # guess: supervisors kill after 10 to 90 s"""


LINGER_S: Final = 2.0
"""How long what is sent behind an answer is still taken in, unread, so that the answer arrives.  # guess"""


@dataclass(frozen=True, slots=True)
class ListeningAddress:
    """Where the node can be reached; ``port`` is the real one when 0 was asked for."""

    host: str
    port: int
    is_encrypted: bool = False

    @property
    def url(self) -> str:
        """The address as others write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.is_encrypted else ''}://{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Nobody on another machine gets here."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def create_app(node: ServedNode, *, live: Live | None = None, push_grace_s: float = GRACE_S) -> web.Application:
    """Join all routes on one node."""
    app = web.Application(
        middlewares=[
            note_requests,
            count_requests,
            answer_errors,
            require_own_name,
            reject_cross_origin_pages,
            reject_encoded_bodies,
            RequestGate().__call__,
            identify_caller,
            PeerQuotas().__call__,
        ],
        client_max_size=MAX_PACK_BYTES,
    )
    app[NODE] = node
    app[LIVE] = live or Live()
    app[CONNECTIONS] = Connections(app[LIVE])
    app[SEND_RATE] = ByteRate()
    app[RECEIVE_RATE] = ByteRate()
    app[UPLOADS] = Uploads()
    app[DRAINING] = []
    # Fixed paths first: /datasets/... is no dataset's.
    for prepare in (exchange.prepare_app, trees.prepare_app, row_intake.prepare_app):
        prepare(app)
    register_routes(app, CORE_ROUTES)

    async def come_up(_: web.Application) -> AsyncIterator[None]:
        app[NONCES] = Nonces(node.clock.now().seconds)
        app[PUSHES] = PushRegistry(node, app[LIVE].metrics, app[UPLOADS])
        care = asyncio.create_task(app[PUSHES].forget_idle())
        yield
        care.cancel()
        with suppress(asyncio.CancelledError):
            await care
        await app[PUSHES].close(push_grace_s)

    app.cleanup_ctx.append(come_up)
    return app


def make_runner(app: web.Application, *, grace_s: float = GRACE_S) -> web.AppRunner:
    """Put the application behind the limits of connections and headers."""
    return web.AppRunner(
        app,
        access_log_class=JsonAccessLogger,
        access_log=LOGGER,
        keepalive_timeout=KEEPALIVE_S,
        lingering_time=LINGER_S,
        max_line_size=MAX_REQUEST_LINE_BYTES,
        max_field_size=MAX_HEADER_FIELD_BYTES,
        max_headers=MAX_HEADERS,
        auto_decompress=False,
        shutdown_timeout=grace_s,
    )


async def serve(
    node: ServedNode,
    *,
    host: str,
    port: int,
    on_ready: Callable[[ListeningAddress, web.Application], None],
    stop: asyncio.Event | None = None,
    grace_s: float = GRACE_S,
    live: Live | None = None,
    tls: ssl.SSLContext | None = None,
    on_reload: Callable[[], None] | None = None,
    add_routes: Callable[[web.Application], None] = lambda _app: None,
) -> None:
    """Serve until SIGTERM, SIGINT or ``stop``, then end what runs within ``grace_s`` seconds.

    Args:
        node: What to serve.
        host: Address to listen on.
        port: Port to listen on; 0 takes any free one.
        on_ready: Called once the port is open, with its address and the application.
        stop: Set to end serving from inside the process, without signals.
        grace_s: Limit for requests and verifications that run when the node is told to stop.
        live: What may change while the node runs; None: the defaults, for ever.
        tls: Encrypts the port; None: it is not encrypted.
        on_reload: Called on the event loop at SIGHUP; None: SIGHUP is left as it is.
        add_routes: Registers the routes of plug-ins.

    Raises:
        AddressInUseError: The address cannot be listened on.
    """
    stop = stop or asyncio.Event()
    live = live or Live()
    app = create_app(node, live=live, push_grace_s=grace_s)
    add_routes(app)
    runner = make_runner(app, grace_s=grace_s)
    observer = web.AppRunner(observing.create_observing_app(live, app), access_log=None, shutdown_timeout=grace_s)
    handler = log_to()
    listened = False
    doors = ExitStack()
    signals: dict[signal.Signals, Callable[[], None]] = {signal.SIGTERM: stop.set, signal.SIGINT: stop.set}
    if on_reload is not None:
        signals[signal.SIGHUP] = on_reload
    try:
        await runner.setup()
        listener = await _open(runner, host, port, tls)
        doors.callback(listener.close)
        address = ListeningAddress(host, listener.sockets[0].getsockname()[1], tls is not None)
        watched = live.configuration.observe
        if watched.port is not None:
            await observer.setup()
            watch = await _open(observer, watched.address, watched.port, None)
            doors.callback(watch.close)
            write_line(
                "observable", url=ListeningAddress(watched.address, watch.sockets[0].getsockname()[1]).url + "/metrics"
            )
        listened = True
        write_line("listening", url=address.url)
        with _handled_signals(signals):
            on_ready(address, app)
            await stop.wait()
        app[DRAINING].append("stopping")
        write_line("stopping", grace_s=grace_s)
    finally:
        doors.close()
        await runner.cleanup()
        await observer.cleanup()
        if listened:
            write_line("stopped")
        LOGGER.removeHandler(handler)


async def _open(runner: web.AppRunner, host: str, port: int, tls: ssl.SSLContext | None) -> HttpListener:
    try:
        return await listen(runner, host, port, connections=runner.app[CONNECTIONS], tls=tls)
    except (OSError, OverflowError) as error:
        raise AddressInUseError(host, port, _reason(error)) from error


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return "another program uses it" if getattr(error, "errno", None) == errno.EADDRINUSE else text


@contextmanager
def _handled_signals(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    taken = []
    # Only the main thread of a process can take signals; elsewhere ``stop`` is the way.
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for number, handle in handlers.items():
            loop.add_signal_handler(number, handle)
            taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
