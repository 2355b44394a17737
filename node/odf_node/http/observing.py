"""The second port, for those who watch the node: figures, health, readiness (DAEMON-8)."""

import asyncio

from aiohttp import web

from odf_node import http
from odf_node.http.live import LIVE, Live
from odf_node.metrics import MEDIA_TYPE


def create_observing_app(live: Live, main: web.Application) -> web.Application:
    """Make the application of the second port; its health and readiness are those of ``main``."""
    app = web.Application(
        middlewares=[http.listening.note_requests, http.middleware.answer_errors, http.origins.require_own_name]
    )
    app[LIVE] = live
    app[http.listening.CONNECTIONS] = http.listening.Connections(live)
    app[http.served_node.NODE] = main[http.served_node.NODE]
    app[http.middleware.DRAINING] = main[http.middleware.DRAINING]
    app.router.add_get("/metrics", _get_metrics)
    app.router.add_get("/health", _get_health)
    app.router.add_get("/ready", http.health.get_ready)
    return app


async def _get_health(request: web.Request) -> web.Response:
    """Alive in any case: a node with damaged objects serves the others, and a restart mends nothing."""
    damaged = request.app[LIVE].damaged_objects
    return web.json_response(
        {"status": "damaged" if damaged else "alive", "damaged_objects": damaged}, headers={"Cache-Control": "no-store"}
    )


async def _get_metrics(request: web.Request) -> web.Response:
    body = await asyncio.to_thread(request.app[LIVE].metrics.render)
    return web.Response(body=body.encode(), headers={"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"})
