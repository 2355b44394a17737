"""Addresses that a user typed, read (EX-15, SMART-1)."""

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from yarl import URL

from odf_node.adapters.peer_protocols import find_protocol
from odf_node.records.datasets import ADDRESS_SCHEMES
from odf_protocol.errors import MalformedError, UnsupportedError

_CORE_SCHEMES: Final = ("http", "https")


def is_http(address: str) -> bool:
    """Tell whether an address is one of a server, and not of files."""
    return _find_http_scheme(address) is not None


def _find_http_scheme(address: str) -> str | None:
    """Find what the scheme of an address means for HTTP: itself, or as the plug-in with its protocol says."""
    scheme = address.partition("://")[0]
    if scheme in _CORE_SCHEMES:
        return scheme
    protocol = find_protocol(address)
    return None if protocol is None else protocol.schemes[scheme]


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
    scheme = _find_http_scheme(address)
    if scheme is None:
        raise UnsupportedError("address", found=repr(address), supported=", ".join(ADDRESS_SCHEMES))
    try:
        url = URL(address).with_scheme(scheme).with_fragment(None).with_query(None)
    except ValueError as error:
        raise MalformedError("address", expected="scheme://host/dataset", found=repr(address)) from error
    if not url.host or not url.path.strip("/"):
        expected = f"one that ends with the dataset's name: {address.rstrip('/')}/NAME"
        raise MalformedError("address", expected=expected, found=repr(address))
    if url.user is not None or url.password is not None:
        raise MalformedError("address", expected="no user and password in it", found="some")
    return url.with_path(url.path.rstrip("/") + "/")
