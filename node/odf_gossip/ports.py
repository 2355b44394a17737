"""Gossip as the rest of the node sees it: who hears of items, where they are kept, how messages travel."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the store implements these ports, and every command opens the store
    from odf_gossip_protocol.item import Item
    from odf_gossip_protocol.messages import Reply, Request
    from odf_protocol.peer_addresses import PeerAddress


class GossipSink(Protocol):
    """Somebody in this node who wants to hear what arrives."""

    def accept(self, item: "Item") -> None:
        """Hear of a verified item of somebody else's that is new here.

        Called in a worker thread, one item at a time, in order of arrival, after the item is kept. An item may come
        again after a restart. Whether its signer is of any importance, the sink decides. What the sink raises is
        logged and ends nothing.
        """
        ...


class GossipReceiver(Protocol):
    """The service behind the route."""

    def receive(self, bucket: str, body: bytes) -> bytes | None:
        """Answer a request from an address bucket; None: the sender is to come back later.

        Raises:
            MalformedError: It is no request.
        """
        ...


class GossipTransport(Protocol):
    """Carries a request to a peer."""

    async def ask(self, address: "PeerAddress", request: "Request", *, is_named: bool) -> "Reply":
        """Send a request and return the reply.

        Args:
            address: Of the peer.
            request: What to ask.
            is_named: The operator named the address, so it may be private.

        Raises:
            UnavailableError: No reply.
            MalformedError: What came is no reply.
            RejectedError: The address must not be connected to.
        """
        ...
