"""The routes of a node that gossips, with a receiver of a test's."""

from aiohttp import web

from odf_gossip.route import ANSWERING, ROUTES
from odf_node.http.route_tables import add_table
from odf_node.http.served_node import ServedNode
from odf_node.http.server import create_app
from odf_node.ports.gossip import GossipReceiver


def create_gossiping_app(served: ServedNode, receiver: GossipReceiver | None) -> web.Application:
    """Join the routes of the core and that of gossip."""
    app = create_app(served)
    ROUTES.prepare(app, None)  # type: ignore[arg-type]  # it asks nothing of the node
    add_table(app, ROUTES)
    app[ANSWERING].receiver = receiver
    return app
