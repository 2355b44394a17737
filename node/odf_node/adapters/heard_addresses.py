"""Connecting to addresses that only a peer named: in the public internet, without tokens, whenever they are used.

A literal address is judged here, as no resolver sees it; a name by what it resolves to, in the very connection.

Source: clause GOSSIP-57 in ``spec/extensions/gossip.md``.
"""

from aiohttp.abc import AbstractResolver
from yarl import URL

from odf_node.adapters.http_client import ClientSettings
from odf_node.adapters.peer_addresses import open_peer
from odf_node.adapters.peer_urls import parse_peer_url
from odf_node.adapters.public_resolver import PublicResolver
from odf_node.ports.peer_client import PeerDataset
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.gossip.addresses import PeerAddress
from odf_protocol.public_addresses import without_mark


async def open_heard_peer(address: str, settings: ClientSettings, *, allow_private: bool) -> PeerDataset:
    """Open a dataset at an address that a peer named; errors as ``open_peer`` and ``parse_heard``.

    Args:
        address: With or without its mark.
        settings: Patience; no token and no signature is to be in it.
        allow_private: The operator lets peers name private addresses.
    """
    url, resolver = parse_heard(address, allow_private=allow_private)
    return await open_peer(url, settings, resolver=resolver)


def parse_heard(address: str, *, allow_private: bool) -> tuple[str, AbstractResolver | None]:
    """Read an address that a peer named; arguments as ``open_heard_peer``.

    Returns:
        It without its mark, and what is to find its host; None: the system's may.

    Raises:
        RejectedError: It is not in the public internet, or none of a node.
    """
    url = parse_peer_url(without_mark(address))
    if not isinstance(url, URL) or url.host is None or url.port is None:
        raise RejectedError("GOSSIP-57 heard-address-is-of-a-node", found=address)
    if allow_private:
        return str(url), None
    try:
        is_public = PeerAddress.of(url.scheme, url.host, url.port).is_public
    except MalformedError as error:
        raise RejectedError("GOSSIP-57 heard-address-is-of-a-node", found=address) from error
    if not is_public:
        raise RejectedError(
            "GOSSIP-9 address-is-public (only a peer named it; type the address itself if you trust it)", found=address
        )
    return str(url), PublicResolver()
