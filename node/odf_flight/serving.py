"""Start and end the port of Flight SQL with the daemon (FLIGHT-1, FLIGHT-12)."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from odf_flight.answers import Answers
from odf_flight.callers import Gate
from odf_flight.listener import Listener
from odf_flight.query_service import FlightQueries
from odf_flight.server import FlightSqlServer
from odf_node.composition import Node
from odf_node.daemon.background_work import BackgroundService, RunningDaemon, Start
from odf_node.engine_workspace import EngineWorkspace
from odf_node.http.access_log import write_line
from odf_node.http.listening import open_sockets
from odf_node.http.served_node import Live
from odf_node.ports.peer_errors import AddressInUseError

_SWEEP_S: Final = 10.0
_LEAVE_S: Final = 2.0  # guess: what calls take to tell their clients that the node stops


@asynccontextmanager
async def flight_beside(
    node: Node, live: Live, stop: asyncio.Event, tls: ssl.SSLContext | None
) -> AsyncIterator[str | None]:
    """Answer Flight SQL until ``stop`` is set or this is left, if the settings have a port for it; gives its address.

    Args:
        node: Whose datasets are asked.
        live: Settings and figures.
        stop: Ends it.
        tls: Encrypts the port, and speaks ``h2``; None: it is not encrypted.

    Raises:
        AddressInUseError: The port cannot be listened on.
    """
    listen = live.configuration.listen
    if listen.flight_port is None:
        yield None
        return
    answers = Answers(EngineWorkspace(node.home.folder.engines))
    query_service = FlightQueries(node, answers, asyncio.get_running_loop())
    try:
        sockets = await open_sockets(listen.address, listen.flight_port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AddressInUseError(listen.address, listen.flight_port, reason) from error
    folder = TemporaryDirectory(prefix="odf-flight-")  # for this user alone
    listener = Listener(live, Path(folder.name), tls)
    gate = Gate(node.store, node.clock, live, listener.find_share)
    server = await asyncio.to_thread(FlightSqlServer, listener.location, node, gate, query_service, answers)
    listener.open(sockets)
    sweeping = asyncio.create_task(_sweep(answers, query_service))
    ending = asyncio.create_task(_end(server, listener, query_service, stop, live.configuration.shutdown.grace_seconds))
    host = f"[{listen.address}]" if ":" in listen.address else listen.address
    try:
        yield f"{'grpc+tls' if tls else 'grpc'}://{host}:{sockets[0].getsockname()[1]}"
    finally:
        stop.set()
        sweeping.cancel()
        await ending
        await query_service.close()
        await asyncio.to_thread(answers.close)
        folder.cleanup()


@asynccontextmanager
async def _serve_beside(daemon: RunningDaemon) -> AsyncIterator[Start]:
    is_wanted = daemon.live.configuration.listen.flight_port is not None
    tls = daemon.make_tls("h2") if is_wanted else None
    async with flight_beside(daemon.node, daemon.live, daemon.stop, tls) as url:
        yield lambda _listening, _app: write_line("flight", url=url) if url is not None else None


SERVICE: Final = BackgroundService(_serve_beside)
"""Found by its entry point in the group ``odf_node.background``."""


async def _sweep(answers: Answers, query_service: FlightQueries) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        await asyncio.to_thread(answers.sweep)
        await query_service.sweep()


async def _end(
    server: FlightSqlServer, listener: Listener, query_service: FlightQueries, stop: asyncio.Event, grace_s: float
) -> None:
    """Take no call any more, and give those that run some time; questions are ended when half of it is over."""
    await stop.wait()
    listener.shut()
    ended = threading.Event()

    def shut() -> None:
        server.shutdown()
        ended.set()

    # The library waits for calls without end, so it does on a thread that nobody waits for.
    threading.Thread(target=shut, name="flight end", daemon=True).start()
    await asyncio.to_thread(ended.wait, grace_s / 2)
    query_service.stop()
    await asyncio.to_thread(ended.wait, grace_s / 2 + _LEAVE_S)
    # Also a client that reads nothing, for which the library would wait without end.
    await listener.empty()
    await asyncio.to_thread(ended.wait)
