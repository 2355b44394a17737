"""A node that answers Flight SQL on a port of this process, and clients of it."""

import asyncio
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from odf_flight import flight_beside
from odf_node.configuration import Configuration
from odf_node.configuration.declaration import AccessSettings, LimitSettings, Listen, Tls
from odf_node.http.access_log import log_to
from odf_node.http.encryption import make_tls_context
from odf_node.http.served_node import Live
from odf_protocol.errors import OdfError
from support.secretive_node import SecretiveNode


@dataclass
class FlightNode:
    """The served node, and what it logged."""

    made: SecretiveNode
    url: str
    live: Live
    log: io.StringIO


@contextmanager
def serving_flight(made: SecretiveNode, **settings: Any) -> Iterator[FlightNode]:
    """Serve until left; questions are DataFusion's, which starts in a second."""
    live = Live(
        Configuration(
            listen=Listen(flight_port=settings.get("port", 0)),
            access=settings.get("access", AccessSettings()),
            limits=settings.get("limits", LimitSettings()),
        )
    )
    files = settings.get("tls", Tls())
    tls = make_tls_context(files.certificate, files.key, "h2") if files.certificate else None
    loop, ready = asyncio.new_event_loop(), threading.Event()
    stop, log = asyncio.Event(), io.StringIO()

    failures, urls = list[OdfError](), list[str]()

    async def serve() -> None:
        try:
            async with flight_beside(made.node, live, stop, tls) as url:
                assert url is not None
                urls.append(url)
                ready.set()
                await stop.wait()
        except OdfError as error:  # it is raised below
            failures.append(error)
        ready.set()

    handler = log_to(log)
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(60)
        if failures:
            raise failures[0]
        yield FlightNode(made, urls[0], live, log)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(120)
        handler.close()
        assert not thread.is_alive()
        loop.close()
