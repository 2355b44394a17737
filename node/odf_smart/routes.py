"""The routes as the node finds them by the entry point ``smart`` of the group ``odf_node.routes``."""

from typing import Final

from aiohttp import web

from odf_node.composition import Node
from odf_node.http.route_tables import RouteTable
from odf_smart import pull_route, push_route


def _prepare(app: web.Application, _node: Node) -> None:
    pull_route.prepare_app(app)
    push_route.prepare_app(app)


ROUTES: Final = RouteTable((*pull_route.ROUTES, *push_route.ROUTES), _prepare)
