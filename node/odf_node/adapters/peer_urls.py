"""Addresses that a user typed, read (EX-15, SMART-1)."""

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from yarl import URL

from odf_node.records.datasets import ADDRESS_SCHEMES
from odf_protocol.errors import MalformedError, UnsupportedError

_HTTP_SCHEMES: Final = {"http": "http", "https": "https", "odf+http": "http", "odf+https": "https"}
"""As users write them, and what they mean for HTTP."""
_SMART_SCHEMES: Final = frozenset({"odf+http", "odf+https"})


def is_http(address: str) -> bool:
    """Say whether an address is one of a server, and not of files."""
    return address.partition("://")[0] in _HTTP_SCHEMES


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
        raise UnsupportedError("address", found=repr(address), supported=", ".join(ADDRESS_SCHEMES))
    try:
        url = URL(address).with_scheme(_HTTP_SCHEMES[split.scheme]).with_fragment(None).with_query(None)
    except ValueError as error:
        raise MalformedError("address", expected="scheme://host/dataset", found=repr(address)) from error
    if not url.host or not url.path.strip("/"):
        expected = f"one that ends with the dataset's name: {address.rstrip('/')}/NAME"
        raise MalformedError("address", expected=expected, found=repr(address))
    if url.user is not None or url.password is not None:
        raise MalformedError("address", expected="no user and password in it", found="some")
    return url.with_path(url.path.rstrip("/") + "/")
