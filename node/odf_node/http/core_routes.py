"""The routes of the core, in the order in which they are tried: fixed paths first, as /datasets/... is no dataset's."""

from typing import Final

from odf_node.http import exchange, observing, push, row_intake, simple_protocol, trees

CORE_ROUTES: Final = (
    *observing.ROUTES,
    *exchange.ROUTES,
    *trees.ROUTES,
    *push.ROUTES,
    *row_intake.ROUTES,
    *simple_protocol.ROUTES,
)
