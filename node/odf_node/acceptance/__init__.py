"""Blocks of others: verify, then decode, then judge, then accept. ``acceptor`` is the one gate."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.acceptance import acceptor as acceptor
    from odf_node.acceptance import refusals as refusals
    from odf_node.acceptance import refusing as refusing
else:
    __getattr__ = late_modules(__name__)
