"""Tables of HTTP routes: what a plug-in of the group ``odf_node.routes`` is, and how its routes are registered.

Routes of the core are registered first: no plug-in takes the place of one.

Source: clauses PLUG-1 to PLUG-5 in ``spec/plug-ins.md``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from aiohttp import web

from odf_node.composition import Node
from odf_node.http.callers import get_caller, unauthorized
from odf_node.http.middleware import Handler
from odf_node.plug_ins import contained, load_plug_ins

GROUP: Final = "odf_node.routes"


class Access(Enum):
    """Who is answered; what holds for every request (limits, origins, quotas) holds in any case."""

    BY_GRANTS = "by grants"
    """Every caller; the handler shows what the caller may read."""
    TOKEN = "token"  # noqa: S105 - no secret
    """Callers with a valid token of this node, and nodes that sign and were granted something; others get 401."""


@dataclass(frozen=True, slots=True)
class Route:
    """One route.

    Attributes:
        method: Of HTTP, in capitals; ``*`` for all. ``GET`` answers ``HEAD`` too.
        path: As aiohttp writes it, such as ``/{dataset}/pull``.
        handler: Answers requests on the event loop of the daemon.
        access: Who is answered.
        operation: What the route is for programs: an operation object of OpenAPI as YAML, in which a word stands for a
            parameter or response of ``spec/schemas/openapi.components.yaml``. Empty: the route is for people.
    """

    method: str
    path: str
    handler: Handler
    access: Access = Access.BY_GRANTS
    operation: str = ""


@dataclass(frozen=True, slots=True)
class RouteTable:
    """The routes of one subject.

    Attributes:
        routes: One row a route.
        prepare: Called once before the routes are registered, with the application, for what handlers find there and
            what starts and ends with it, and with the node.
    """

    routes: tuple[Route, ...]
    prepare: Callable[[web.Application, Node], None] = lambda _app, _node: None


def add_plug_in_routes(app: web.Application, node: Node) -> None:
    """Register the routes of all plug-ins; a table of another package that fails here is left out and noted."""
    for name, table in load_plug_ins(GROUP, RouteTable).items():
        with contained(GROUP, name):
            _require_free(app, table)
            table.prepare(app, node)
            add_table(app, table)


def add_table(app: web.Application, table: RouteTable) -> None:
    """Register the routes of a table."""
    register_routes(app, table.routes)


def register_routes(app: web.Application, routes: Iterable[Route]) -> None:
    """Register routes in their order."""
    for route in routes:
        handler = _with_token(route.handler) if route.access is Access.TOKEN else route.handler
        if route.method == "GET":
            app.router.add_get(route.path, handler)
        else:
            app.router.add_route(route.method, route.path, handler)


def _require_free(app: web.Application, table: RouteTable) -> None:
    """Check that no route of a table is one of the application's already.

    Raises:
        ValueError: One is.
    """
    taken = {(route.method, route.resource.canonical) for route in app.router.routes() if route.resource is not None}
    for route in table.routes:
        if (route.method, route.path) in taken or ("*", route.path) in taken:
            raise ValueError(f"the route {route.method} {route.path} is another one's")
        taken.add((route.method, route.path))


def _with_token(handler: Handler) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        caller = get_caller(request)
        if caller.token is None:
            raise unauthorized(caller.lack)
        return await handler(request)

    return answer
