"""Whether the process lives, and whether it can serve: for supervisors and load balancers (EX-16)."""

import asyncio
from http import HTTPStatus

from aiohttp import web

from odf_node.http.middleware import DRAINING
from odf_node.http.problems import ProblemError
from odf_node.http.served_node import NODE
from odf_protocol.exchange.routes import PREFIX


def add_routes(app: web.Application) -> None:
    """Register the routes."""
    app.router.add_get(f"/{PREFIX}/health", _get_health)
    app.router.add_get(f"/{PREFIX}/ready", get_ready)


async def _get_health(_request: web.Request) -> web.Response:
    return web.json_response({"status": "alive"}, headers={"Cache-Control": "no-store"})


async def get_ready(request: web.Request) -> web.Response:
    """Say whether the node can serve now."""
    if request.app[DRAINING]:
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "stopping", "the node is stopping")
    # Errors of the store become an answer of their own: 503 while it is busy, 500 when it is damaged.
    await asyncio.to_thread(request.app[NODE].tokens.list_tokens)
    return web.json_response({"status": "ready"}, headers={"Cache-Control": "no-store"})
