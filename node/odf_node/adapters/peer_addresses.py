"""From an address that a user typed to the dataset there (EX-15)."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path

from aiohttp.abc import AbstractResolver
from yarl import URL

from odf_node.adapters.exchange_peer import ExchangePeer, node_info_url
from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.layout_places import open_layout_peer
from odf_node.adapters.peer_protocols import find_protocol
from odf_node.adapters.peer_urls import is_http, parse_peer_url
from odf_node.adapters.plain_peer import PlainPeer
from odf_node.adapters.public_resolver import PublicResolver
from odf_node.adapters.several_peers import SeveralPeers
from odf_node.ports.peer_client import PeerDataset
from odf_node.ports.peer_errors import PeerUnavailableError
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.exchange.messages import JSON_MEDIA_TYPE, NodeInfo, decode_message
from odf_protocol.exchange.routes import PROTOCOL_VERSION
from odf_protocol.peer_addresses import PeerAddress
from odf_protocol.public_addresses import without_mark


async def open_peer(
    address: str, settings: ClientSettings | None = None, *, resolver: AbstractResolver | None = None
) -> PeerDataset:
    """Find out what is at an address and give the dataset there; the caller enters and leaves it.

    Args:
        address: ``http(s)://.../NAME``, ``odf+http(s)://.../NAME``, ``file:///...``, a path with a slash in it, or a
            place in a bucket.
        settings: Patience and token; None: the usual.
        resolver: Finds hosts; None: the system's.

    Raises:
        MalformedError: No address, or none of a dataset.
        UnsupportedError: A scheme that this node does not speak.
        PeerUnavailableError: Nobody answers there.
    """
    settings = settings or ClientSettings()
    if not is_http(address):
        parallel, rate = settings.parallel, settings.rate
        files = await finish_in_thread(lambda: open_layout_peer(address, rate=rate, parallel=parallel))
        if files is not None:
            return files
    parts = parse_peer_url(address)
    assert isinstance(parts, URL)
    client = HttpClient(settings, resolver=resolver)
    await client.__aenter__()
    try:
        info = await _find_node_info(client, parts)
    except BaseException:
        await client.close()
        raise
    if info is not None:
        client.may_sign = True
        return ExchangePeer(client, parts, info)
    protocol = find_protocol(address)
    if protocol is not None:
        return protocol.open(client, parts)
    return PlainPeer(client, parts)


async def open_peers(addresses: Sequence[str], settings: Callable[[str], ClientSettings], scratch: Path) -> PeerDataset:
    """Open the same dataset at several nodes; errors as ``open_peer``.

    Args:
        addresses: The first one's chain is read; a node that does not answer is left out, unless it is the first.
        settings: Patience and token for each.
        scratch: A folder on the store's disk.

    Raises:
        UnsupportedError: One of them is no node that speaks our exchange.
    """
    peers: list[ExchangePeer] = []
    async with AsyncExitStack() as opened:
        for address in addresses:
            try:
                peer = await open_peer(address, settings(address))
            except PeerUnavailableError:
                if not peers:
                    raise
                continue
            opened.push_async_exit(peer)
            if not isinstance(peer, ExchangePeer):
                supported = "nodes that speak our exchange"
                raise UnsupportedError("reading from several nodes", found=address, supported=supported)
            peers.append(peer)
        opened.pop_all()
    return SeveralPeers(peers, scratch)


async def _find_node_info(client: HttpClient, url: URL) -> NodeInfo | None:
    """Ask for the node's own words; whoever has none is a plain server, whatever it answers instead."""
    try:
        # Once: a wrong address is to be said at once. Whether the answer is read or not, the next requests will tell.
        answer = await client.ask("GET", node_info_url(url))
    except (MalformedError, UnsupportedError):
        return None
    if answer.status != HTTPStatus.OK or answer.content_type != JSON_MEDIA_TYPE:
        return None
    try:
        info = decode_message(answer.body, NodeInfo)
    except MalformedError:
        return None
    return info if PROTOCOL_VERSION in info.protocol_versions else None


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
