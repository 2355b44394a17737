"""What goes into the machine and what comes out of it.

Source: clause GOSSIP-42 in ``spec/plug-ins/gossip.md``.
"""

from dataclasses import dataclass

from odf_gossip_protocol.item import Item
from odf_gossip_protocol.messages import Reply, Request
from odf_gossip_protocol.store import Interests
from odf_protocol.peer_addresses import PeerAddress, PeerRecord


@dataclass(frozen=True, slots=True)
class Tick:
    """A round has passed."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Items that this node vouches for passing on: its own, or of datasets it serves."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Restore:
    """Items that were kept when the node ran last; nobody is told about them."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Received:
    """A request came in.

    Attributes:
        bucket: Address bucket of the sender, as the transport saw it.
        request: What is asked.
    """

    bucket: str
    request: Request


@dataclass(frozen=True, slots=True)
class Replied:
    """A request that was sent got its reply."""

    address: str
    request: Request
    reply: Reply


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that was sent got no reply, or none that can be read."""

    address: str
    request: Request


@dataclass(frozen=True, slots=True)
class SetRecord:
    """This node's word about itself; without addresses, or None: it asks and is never asked."""

    record: PeerRecord | None


@dataclass(frozen=True, slots=True)
class SetInterests:
    """What the operator cares for has changed."""

    interests: Interests


@dataclass(frozen=True, slots=True)
class SetPinned:
    """The peers that the operator named, all of them."""

    addresses: tuple[PeerAddress, ...]


Event = Tick | Publish | Restore | Received | Replied | Failed | SetRecord | SetInterests | SetPinned


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; tell what becomes of it by ``Replied`` or ``Failed``."""

    address: str
    request: Request


@dataclass(frozen=True, slots=True)
class Respond:
    """The reply to the request that is being handled."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Reject:
    """No reply: the sender asks too often, or sent what no honest node sends."""


@dataclass(frozen=True, slots=True)
class Accept:
    """A verified item of somebody else's is new here.

    Attributes:
        item: The item.
        came_from: Address of the peer that had it, where this node asked for it.
    """

    item: Item
    came_from: str | None


@dataclass(frozen=True, slots=True)
class Notify:
    """A verified head of a dataset of interest has a newer one in its place here; the node may hold blocks against it.

    It is not kept.
    """

    item: Item


@dataclass(frozen=True, slots=True)
class Forget:
    """Items are kept no longer."""

    ids: tuple[bytes, ...]


Effect = Send | Respond | Reject | Accept | Notify | Forget
