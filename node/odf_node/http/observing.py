"""For those who watch the node: health and readiness (EX-16), and the second port, which adds figures (DAEMON-8)."""

import asyncio
from http import HTTPStatus
from typing import Final

from aiohttp import web

from odf_node.http.listening import CONNECTIONS, Connections, note_requests
from odf_node.http.middleware import DRAINING, answer_errors
from odf_node.http.origins import require_own_name
from odf_node.http.problems import ProblemError
from odf_node.http.route_tables import Route
from odf_node.http.served_node import LIVE, NODE, Live
from odf_protocol.exchange.routes import PREFIX


async def _get_health(_request: web.Request) -> web.Response:
    return web.json_response({"status": "alive"}, headers={"Cache-Control": "no-store"})


async def _get_ready(request: web.Request) -> web.Response:
    """Say whether the node can serve now."""
    if request.app[DRAINING]:
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "stopping", "the node is stopping")
    # Errors of the store become an answer of their own: 503 while it is busy, 500 when it is damaged.
    await asyncio.to_thread(request.app[NODE].store.list_tokens)
    return web.json_response({"status": "ready"}, headers={"Cache-Control": "no-store"})


def create_observing_app(live: Live, main: web.Application) -> web.Application:
    """Make the application of the second port; its health and readiness are those of ``main``."""
    app = web.Application(middlewares=[note_requests, answer_errors, require_own_name])
    app[LIVE] = live
    app[CONNECTIONS] = Connections(live)
    app[NODE] = main[NODE]
    app[DRAINING] = main[DRAINING]
    app.router.add_get("/metrics", _get_metrics)
    app.router.add_get("/health", _get_damage)
    app.router.add_get("/ready", _get_ready)
    return app


async def _get_damage(request: web.Request) -> web.Response:
    """Alive in any case: a node with damaged objects serves the others, and a restart fixes nothing."""
    damaged = request.app[LIVE].damaged_objects
    return web.json_response(
        {"status": "damaged" if damaged else "alive", "damaged_objects": damaged}, headers={"Cache-Control": "no-store"}
    )


async def _get_metrics(request: web.Request) -> web.Response:
    metrics = request.app[LIVE].metrics
    body = await asyncio.to_thread(metrics.render)
    return web.Response(body=body.encode(), headers={"Content-Type": metrics.media_type, "Cache-Control": "no-store"})


ROUTES: Final = (
    Route(
        "GET",
        f"/{PREFIX}/health",
        _get_health,
        operation="""\
summary: Whether the process lives (EX-16).
responses:
  200: Status
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/ready",
        _get_ready,
        operation="""\
summary: Whether the node can serve (EX-16).
responses:
  200: Status
  500: Problem
  503: Problem
""",
    ),
)
