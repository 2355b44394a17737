"""Other nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from odf_protocol.did import DidKey
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A node at an address.

    ``node_key`` is the identity that was seen first there (None: it named none, as plain ODF servers do).
    ``publisher_keys`` are keys of others that it vouches to publish for, in the order they were learned.
    """

    url: str
    node_key: DidKey | None
    publisher_keys: tuple[DidKey, ...] = ()
    first_seen: Timestamp


class PeerStore(Protocol):
    """Nodes that were met, and those that the operator named to gossip with."""

    def put_peer(self, peer: Peer) -> Peer:
        """Remember a peer: first sight fixes ``node_key`` and ``first_seen``, publisher keys add up.

        A peer without a node key may get one later.

        Returns:
            The peer as it is now kept.

        Raises:
            PeerKeyChangedError: Another node key is pinned for the address; nothing changed.
        """
        ...

    def find_peer(self, url: str) -> Peer | None:
        """Return the peer at an address, or None."""
        ...

    def list_peers(self) -> tuple[Peer, ...]:
        """Return all peers, by address."""
        ...

    def delete_peer(self, url: str) -> None:
        """Forget a peer with all it was pinned to; forgetting an unknown one is no error."""
        ...

    def name_peer(self, url: str, at: Timestamp) -> None:
        """Keep an address that the operator named to gossip with; it may be known as a peer already."""
        ...

    def list_named_peers(self) -> tuple[str, ...]:
        """Return the addresses that the operator named."""
        ...

    def replace_peer_records(self, records: Iterable[bytes]) -> None:
        """Keep these records of peers that answered, instead of all others."""
        ...

    def list_peer_records(self) -> tuple[bytes, ...]:
        """Return them."""
        ...
