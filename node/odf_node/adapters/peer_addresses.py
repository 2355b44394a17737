"""From an address that a user typed to the dataset there (EX-15)."""

from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from yarl import URL

from odf_node.adapters.exchange_peer import ExchangePeer, node_info_url
from odf_node.adapters.folder_peer import FolderPeer
from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.plain_peer import PlainPeer
from odf_node.adapters.smart_peer import SmartPeer
from odf_node.exchange.messages import JSON_MEDIA_TYPE, NodeInfo, decode_message
from odf_node.exchange.routes import PROTOCOL_VERSION
from odf_node.ports.peer_client import PeerDataset
from odf_protocol.errors import MalformedError, UnsupportedError

__all__ = ["open_peer", "parse_peer_url"]

_HTTP_SCHEMES: Final = {"http": "http", "https": "https", "odf+http": "http", "odf+https": "https"}
"""As users write them, and what they mean for HTTP."""
_SMART_SCHEMES: Final = frozenset({"odf+http", "odf+https"})


async def open_peer(address: str, settings: ClientSettings | None = None) -> PeerDataset:
    """Find out what is at an address and give the dataset there; the caller enters and leaves it.

    Args:
        address: ``http(s)://.../NAME``, ``odf+http(s)://.../NAME``, ``file:///...`` or a path with a slash in it.
        settings: Patience and token; None: the usual.

    Raises:
        MalformedError: No address, or none of a dataset.
        UnsupportedError: A scheme that this node does not speak.
        PeerUnavailableError: Nobody answers there.
    """
    parts = parse_peer_url(address)
    if isinstance(parts, Path):
        return FolderPeer(parts)
    client = HttpClient(settings or ClientSettings())
    await client.__aenter__()
    try:
        info = await _find_node_info(client, parts)
    except BaseException:
        await client.__aexit__(None, None, None)
        raise
    if info is not None:
        return ExchangePeer(client, parts, info)
    return SmartPeer(client, parts) if is_smart(address) else PlainPeer(client, parts)


def is_smart(address: str) -> bool:
    """Say whether an address asks for the Smart Transfer Protocol (SMART-1)."""
    return address.partition("://")[0] in _SMART_SCHEMES


def parse_peer_url(address: str) -> URL | Path:
    """Read an address: a folder, or a URL with the scheme ``http`` or ``https`` and a trailing slash.

    Raises:
        MalformedError: No address, or none of a dataset.
        UnsupportedError: A scheme that this node does not speak.
    """
    try:
        split = urlsplit(address)
    except ValueError as error:
        raise MalformedError("address", expected="scheme://host/dataset", found=repr(address)) from error
    if split.scheme == "file":
        if split.netloc not in {"", "localhost"}:
            raise MalformedError("address", expected="file:///folder", found=repr(address))
        return Path(unquote(split.path))
    if not split.scheme and "/" in address:
        return Path(address).expanduser()
    if split.scheme not in _HTTP_SCHEMES:
        raise UnsupportedError("address", found=repr(address), supported="http, https, odf+http, odf+https, file")
    try:
        url = URL(address).with_scheme(_HTTP_SCHEMES[split.scheme]).with_fragment(None).with_query(None)
    except ValueError as error:
        raise MalformedError("address", expected="scheme://host/dataset", found=repr(address)) from error
    if not url.host or not url.path.strip("/"):
        raise MalformedError("address", expected="one that ends with the dataset's name", found=repr(address))
    if url.user is not None or url.password is not None:
        raise MalformedError("address", expected="no user and password in it", found="some")
    return url.with_path(url.path.rstrip("/") + "/")


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
