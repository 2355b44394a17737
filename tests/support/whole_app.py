"""The routes of the core with those of plug-ins that nodes speak by, as a daemon joins them."""

from typing import Any

from aiohttp import web

from odf_gossip import route as gossip_route
from odf_gossip.ports import GossipReceiver
from odf_node.http.route_tables import add_table
from odf_node.http.served_node import ServedNode
from odf_node.http.server import create_app
from odf_smart import routes as smart_routes


def create_whole_app(served: ServedNode, receiver: GossipReceiver | None = None, **options: Any) -> web.Application:
    """Join the routes; ``receiver`` answers gossip."""
    app = create_app(served, **options)
    add_all_routes(app, receiver)
    return app


def add_all_routes(app: web.Application, receiver: GossipReceiver | None = None) -> None:
    """Add the routes that come from plug-ins; ``receiver`` answers gossip."""
    for table in (gossip_route.ROUTES, smart_routes.ROUTES):
        table.prepare(app, None)  # type: ignore[arg-type]  # they ask nothing of the node
        add_table(app, table)
    app[gossip_route.ANSWERING].receiver = receiver
