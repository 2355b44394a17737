"""Naming peers: the addresses that the operator vouches for."""

from dataclasses import dataclass

from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.ports.clock import Clock
from odf_node.records.peers import Peer
from odf_node.store import MetadataStore
from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.peer_addresses import PeerAddress, decode_peer_record
from odf_protocol.public_addresses import as_heard


@dataclass(frozen=True, slots=True)
class Peers:
    """The use case behind ``odf-node peer``; a running node follows within a round."""

    store: MetadataStore
    clock: Clock

    def add(self, text: str) -> PeerAddress:
        """Name a peer.

        Raises:
            UsageError: Not the address of a node.
        """
        try:
            address = PeerAddress.parse(text.rstrip("/"))
        except MalformedError as error:
            raise UsageError(f"{text} is no address of a node; write it as http(s)://host:port ({error})") from error
        self.store.name_peer(address.text, self.clock.now())
        return address

    def list_peers(self) -> list[tuple[Peer, bool]]:
        """Return all peers that are kept, and whether the operator named them."""
        named = set(self.store.list_named_peers())
        return [(peer, peer.url in named) for peer in self.store.list_peers()]

    def list_askable(self, most: int) -> list[str]:
        """Return addresses of nodes: those that were named first, then those that gossip brought, marked as heard.

        Of each node that gossip brought the address that it calls the best is taken, as long as its word holds.
        """
        named = list(self.store.list_named_peers())
        now = self.clock.now()
        for raw in self.store.list_peer_records():
            try:
                record = decode_peer_record(raw)
            except OdfError:
                continue  # written by another version
            if record.addresses and record.expires > now and record.addresses[0].text not in named:
                named.append(as_heard(record.addresses[0].text))
        return list(dict.fromkeys(named))[:most]

    def delete(self, text: str) -> str:
        """Forget a peer with the key that was seen first there.

        Raises:
            UnknownDatasetError: There is no such peer.
        """
        for url in (text, text.rstrip("/")):
            if self.store.find_peer(url) is not None:
                self.store.delete_peer(url)
                return url
        raise UnknownDatasetError(f"there is no peer {text}; 'odf-node peer list' shows them")
