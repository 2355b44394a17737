"""Addresses of objects that a peer names: where they may lead, and what may be sent there (SMART-11)."""

import re
from collections.abc import Mapping
from typing import Final

from yarl import URL

from odf_node.ports.peer_errors import PeerLiedError
from odf_protocol.public_addresses import is_public_host
from odf_smart_protocol.messages import TransferUrl

_KEPT_BY_US: Final = frozenset(
    {
        *("host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect", "range"),
        *("accept-encoding", "keep-alive", "proxy-authorization", "proxy-connection"),
    }
)
"""Headers that decide what a message is, and to whom it goes."""

_URL: Final = re.compile(r"[\x21-\x7e]+")
"""What stands in a request line as it is: no spaces, no controls, nothing that is written otherwise (RFC 3986)."""
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token (RFC 9110 section 5.6.2): with a space behind it a name would not be one of those above, but to servers."""
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""Text of one line (RFC 9110 section 5.5)."""


def read_transfer_url(found: TransferUrl, *, dataset_url: URL) -> tuple[URL, Mapping[str, str]]:
    """Give the address and the headers, verbatim, if they may be used.

    The host of the dataset's own address may be used with any port. Another one only if it is not in anybody's own
    network: names are resolved by ``PublicResolver``.

    Raises:
        PeerLiedError: They may not.
    """
    if not _URL.fullmatch(found.url):
        raise _reject(dataset_url, "an address", found.url)
    try:
        url = URL(found.url, encoded=True)
        _ = url.host, url.port  # read only now, and may be none
    except ValueError as error:
        raise _reject(dataset_url, "an address", found.url) from error
    if url.scheme not in {"http", "https"} or not url.host or url.user is not None or url.password is not None:
        raise _reject(dataset_url, "an http address", found.url)
    if dataset_url.scheme == "https" and url.scheme != "https":
        raise _reject(dataset_url, "no way back to http", found.url)
    if url.host != dataset_url.host and is_public_host(url.host) is False:
        raise _reject(dataset_url, "an address that is not private", found.url)
    for header in found.headers:
        if not (_NAME.fullmatch(header.name) and _VALUE.fullmatch(header.value)):
            raise _reject(dataset_url, "headers of one line", f"{header.name}: {header.value}")
    headers = {header.name: header.value for header in found.headers}
    strange = sorted(name for name in headers if name.lower() in _KEPT_BY_US)
    if strange:
        raise _reject(dataset_url, "headers of the request alone", strange)
    return url, headers


def _reject(dataset_url: URL, expected: str, found: object) -> PeerLiedError:
    return PeerLiedError(str(dataset_url), "SMART-11 transfer-address", expected=expected, found=found)
