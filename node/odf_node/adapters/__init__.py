"""The ports filled with real things: SQLite, folders, key files, HTTP. Adapters see ports, never use cases."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.adapters import accounts as accounts
    from odf_node.adapters import block_stage as block_stage
    from odf_node.adapters import engine_folder as engine_folder
    from odf_node.adapters import hashing_thread as hashing_thread
    from odf_node.adapters import http_client as http_client
    from odf_node.adapters import http_push as http_push
    from odf_node.adapters import image_folder as image_folder
    from odf_node.adapters import kept_session as kept_session
    from odf_node.adapters import layout_places as layout_places
    from odf_node.adapters import lineage_events as lineage_events
    from odf_node.adapters import login_file as login_file
    from odf_node.adapters import node_listing as node_listing
    from odf_node.adapters import observing as observing
    from odf_node.adapters import outgoing as outgoing
    from odf_node.adapters import packing as packing
    from odf_node.adapters import peer_addresses as peer_addresses
    from odf_node.adapters import plain_peer as plain_peer
    from odf_node.adapters import policy_file as policy_file
    from odf_node.adapters import request_signing as request_signing
    from odf_node.adapters import several_peers as several_peers
    from odf_node.adapters import smart_peer as smart_peer
    from odf_node.adapters import traces as traces
else:
    __getattr__ = late_modules(__name__)
