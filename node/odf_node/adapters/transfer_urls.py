"""Addresses of objects that a peer names: where they may lead, and what may be sent there (SMART-11)."""

import ipaddress
import socket
from collections.abc import Mapping
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver
from yarl import URL

from odf_node.ports.peer_errors import PeerLiedError
from odf_protocol.smart_transfer.messages import TransferUrl

_KEPT_BY_US: Final = frozenset(
    {
        *("host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect", "range"),
        *("accept-encoding", "keep-alive", "proxy-authorization", "proxy-connection"),
    }
)
"""Headers that decide what a message is, and to whom it goes."""


def read_transfer_url(found: TransferUrl, *, dataset_url: URL) -> tuple[URL, Mapping[str, str]]:
    """Give the address and the headers, verbatim, if they may be used.

    The host of the dataset's own address may be used with any port. Another one only if it is not in anybody's own
    network: names are resolved by ``PublicResolver``.

    Raises:
        PeerLiedError: They may not.
    """
    try:
        url = URL(found.url, encoded=True)
    except ValueError as error:
        raise _refuse(dataset_url, "an address", found.url) from error
    if url.scheme not in {"http", "https"} or not url.host or url.user is not None or url.password is not None:
        raise _refuse(dataset_url, "an http address", found.url)
    if dataset_url.scheme == "https" and url.scheme != "https":
        raise _refuse(dataset_url, "no way back to http", found.url)
    if url.host != dataset_url.host and _is_private_literal(url.host):
        raise _refuse(dataset_url, "an address that is not private", found.url)
    headers = {header.name: header.value for header in found.headers}
    strange = sorted(name for name in headers if name.lower() in _KEPT_BY_US)
    if strange:
        raise _refuse(dataset_url, "headers of the request alone", strange)
    return url, headers


class PublicResolver(AbstractResolver):
    """Resolves names for transfers: ``host`` as it is, others only to public addresses."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._resolver = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a name; nothing is left where all its addresses are private."""
        found = await self._resolver.resolve(host, port, family)
        if host == self._host:
            return found
        public = [entry for entry in found if not _is_private_literal(entry["host"])]
        if not public:
            raise OSError(None, f"{host} leads into a private network")
        return public

    async def close(self) -> None:
        """End it."""
        await self._resolver.close()


def _is_private_literal(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return not address.is_global or address.is_multicast


def _refuse(dataset_url: URL, expected: str, found: object) -> PeerLiedError:
    return PeerLiedError(str(dataset_url), "SMART-11 transfer-address", expected=expected, found=found)
