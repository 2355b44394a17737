"""``GET /-/greeting``: how many datasets the node has. The one file of an external package that adds a route."""

import asyncio

from aiohttp import web

from odf_node.composition import Node
from odf_node.http.route_tables import Access, Route, RouteTable

NODE: web.AppKey[Node] = web.AppKey("greeting_node", Node)


def prepare(app: web.Application, node: Node) -> None:
    """Keep the node where the handler finds it."""
    app[NODE] = node


async def greet(request: web.Request) -> web.Response:
    """Answer with a count."""
    records = await asyncio.to_thread(request.app[NODE].store.list_datasets)
    return web.json_response({"datasets": len(records)})


ROUTES = RouteTable(
    (Route("GET", "/-/greeting", greet), Route("GET", "/-/greeting/private", greet, Access.TOKEN)), prepare
)
