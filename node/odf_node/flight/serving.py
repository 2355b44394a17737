"""Start and end the port of Flight SQL with the daemon (FLIGHT-1, FLIGHT-12)."""

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from odf_node.composition import Node
from odf_node.configuration.declaration import Tls
from odf_node.engine_workspace import EngineWorkspace
from odf_node.errors import UsageError
from odf_node.http.live import Live
from odf_node.ports.peer_errors import AddressInUseError

if TYPE_CHECKING:
    from odf_node.flight.answers import Answers
    from odf_node.flight.questions import Questions
    from odf_node.flight.server import FlightSqlServer

_SWEEP_S: Final = 10.0
_LEAVE_S: Final = 2.0  # guess: what calls take to tell their clients that the node stops


@asynccontextmanager
async def flight_beside(node: Node, live: Live, stop: asyncio.Event) -> AsyncIterator[str | None]:
    """Answer Flight SQL until ``stop`` is set or this is left, if the settings have a port for it; gives its address.

    Raises:
        UsageError: The library for its messages is not installed.
        AddressInUseError: The port cannot be listened on.
    """
    listen = live.configuration.listen
    if listen.flight_port is None:
        yield None
        return
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise UsageError("listen.flight_port needs protobuf: pip install 'odf-node[flight]'")
    # Heavy, and for this port alone.
    import pyarrow as pa

    from odf_node.flight.answers import Answers
    from odf_node.flight.callers import Gate
    from odf_node.flight.questions import Questions
    from odf_node.flight.server import FlightSqlServer

    answers = Answers(EngineWorkspace(node.home.engines))
    questions = Questions(node, answers, asyncio.get_running_loop())
    gate = Gate(node.store, node.clock, live)
    host = f"[{listen.address}]" if ":" in listen.address else listen.address
    certificates = await asyncio.to_thread(_read_certificates, live.configuration.tls)
    scheme = "grpc+tls" if certificates else "grpc"
    location = f"{scheme}://{host}:{listen.flight_port}"
    try:
        server = await asyncio.to_thread(FlightSqlServer, location, certificates, node, gate, questions, answers)
    except pa.ArrowException as error:
        # The library says no more.
        reason = "another program uses it, or this machine has no such address"
        raise AddressInUseError(listen.address, listen.flight_port, reason) from error
    sweeping = asyncio.create_task(_sweep(answers, questions))
    ending = asyncio.create_task(_end(server, questions, stop, live.configuration.shutdown.grace_seconds))
    try:
        yield f"{scheme}://{host}:{server.port}"
    finally:
        stop.set()
        sweeping.cancel()
        await ending
        await questions.close()
        await asyncio.to_thread(answers.close)


def _read_certificates(tls: Tls) -> list[tuple[bytes, bytes]]:
    """Read what the HTTP port was encrypted with, and so checked, a moment ago."""
    if tls.certificate is None or tls.key is None:
        return []
    return [(tls.certificate.read_bytes(), tls.key.read_bytes())]


async def _sweep(answers: "Answers", questions: "Questions") -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        await asyncio.to_thread(answers.sweep)
        await questions.sweep()


async def _end(server: "FlightSqlServer", questions: "Questions", stop: asyncio.Event, grace_s: float) -> None:
    """Take no call any more, and give those that run some time; questions are ended when half of it is over."""
    await stop.wait()
    ended = threading.Event()

    def shut() -> None:
        server.shutdown()
        ended.set()

    # The library waits for calls without end, so it does on a thread that nobody waits for.
    threading.Thread(target=shut, name="flight end", daemon=True).start()
    await asyncio.to_thread(ended.wait, grace_s / 2)
    questions.stop()
    if not await asyncio.to_thread(ended.wait, grace_s / 2 + _LEAVE_S):
        # At the end of the process the library waits again, without end, for a client that reads nothing. By then all
        # else is closed; what is registered last runs first.
        atexit.register(_leave)


def _leave() -> None:
    """End the process as it is."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
