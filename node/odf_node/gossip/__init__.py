"""What nodes tell each other without being asked: heads, proofs, attestations, peers."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.gossip import peering as peering
else:
    __getattr__ = late_modules(__name__)
