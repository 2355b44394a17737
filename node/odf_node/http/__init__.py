"""The node's HTTP side: ODF's Simple Transfer Protocol and our exchange on one port.

The routes hold no decisions: they parse, bound, ask a port and answer. ``create_app`` in ``server`` joins them,
``serve`` runs them.

Source: ``spec/extensions/exchange.md``; routes are described in ``spec/schemas/openapi.yaml``.
"""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.http import listening as listening
    from odf_node.http import middleware as middleware
    from odf_node.http import origins as origins
    from odf_node.http import served_node as served_node
else:
    __getattr__ = late_modules(__name__)
