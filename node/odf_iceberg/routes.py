"""The routes of the plug-in, found by its entry point.

Source: clause ICEBERG-1 in ``spec/plug-ins/iceberg.md``.
"""

from typing import Final

from aiohttp import web

from odf_iceberg.catalog_routes import CATALOG_ROUTES
from odf_iceberg.file_routes import FILE_ROUTES
from odf_iceberg.service import SERVICE, TableService
from odf_node.composition import Node
from odf_node.http.route_tables import RouteTable


def prepare(app: web.Application, node: Node) -> None:
    """Put what makes tables into the application."""
    app[SERVICE] = TableService(node)
    app.on_cleanup.append(_close)


async def _close(app: web.Application) -> None:
    app[SERVICE].close()


ROUTES: Final = RouteTable((*CATALOG_ROUTES, *FILE_ROUTES), prepare)
"""Found by its entry point in the group ``odf_node.routes``."""
