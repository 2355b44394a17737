"""Which names this node answers to, and web pages that would have a browser ask it: EX-70 and EX-71.

A page of anybody's can have its own name lead to the loopback (DNS rebinding): the browser then takes this node for
the page's own server and lets the page read what it answers. The name that the browser asks for gives it away.
"""

import socket
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from aiohttp import HttpVersion11, web
from yarl import URL

from odf_node.configuration.declaration import Listen
from odf_node.http.middleware import Handler
from odf_node.http.problems import ProblemError
from odf_node.http.served_node import LIVE

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES: Final = frozenset({"same-origin", "none"})
"""``none``: the user typed the address. Source: Fetch Metadata Request Headers, section 2."""


@web.middleware
async def require_own_name(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer requests that were meant for this node.

    Raises:
        ProblemError: 421: it is called by another name; 400: by none or by several.
    """
    named = request.headers.getall("Host", [])
    if len(named) > 1 or (not named and request.version >= HttpVersion11):
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed", f"expected one Host, found {len(named)}")
    called = [_host_of(name) for name in named]
    if not request.raw_path.startswith("/"):
        called.append(_host_of_target(request.raw_path))
    if not all(_answers_to(request, host) for host in called):
        raise ProblemError(
            HTTPStatus.MISDIRECTED_REQUEST,
            "misdirected",
            "this node does not answer to that name; its operator sets listen.public_url or listen.hosts",
        )
    return await handler(request)


@web.middleware
async def reject_cross_origin_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Do nothing that a web page of somebody else asks a browser for: browsers say whose page it is.

    Raises:
        ProblemError: 403.
    """
    changes = request.method not in _READING or "Upgrade" in request.headers
    if changes and not _is_of_ours(request):
        raise ProblemError(
            HTTPStatus.FORBIDDEN, "foreign-page", "pages of other origins may not change anything here, nor converse"
        )
    return await handler(request)


def _is_of_ours(request: web.Request) -> bool:
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in _OWN_SITES:
        return False
    origin = request.headers.get("Origin")
    if origin is None:
        return True
    try:
        page = URL(origin)
        own = URL.build(scheme=page.scheme, authority=request.host)
    except ValueError:
        return False
    return bool(page.host) and page.host_port_subcomponent == own.host_port_subcomponent


def _answers_to(request: web.Request, host: str) -> bool:
    listen = request.app[LIVE].configuration.listen
    bound = None if request.transport is None else request.transport.get_extra_info("sockname")
    here = _find_ip(bound[0]) if isinstance(bound, tuple) else None
    ip = _find_ip(host)
    if host in _own_names(listen) or (ip is not None and (ip.is_loopback or ip == here)):
        return True
    if here is not None and not here.is_loopback:
        # From elsewhere: by an address, which leads to itself alone, or by a name, unless the operator says which.
        return ip is not None or not (listen.hosts or listen.public_url)
    return host == "localhost" or host.endswith(".localhost")


def _own_names(listen: Listen) -> frozenset[str]:
    names = {socket.gethostname().lower(), *(listen.hosts or "").lower().split()}
    if listen.public_url:
        names.add((URL(listen.public_url).host or "").lower())
    return frozenset(names)


def _host_of(text: str) -> str:
    """Return the host in ``Host``, without port and brackets; nothing that anybody is called where it is none."""
    try:
        return "" if "@" in text else (URL.build(scheme="http", authority=text).host or "").lower()
    except ValueError:
        return ""


def _host_of_target(target: str) -> str:
    """Return the host of a target in absolute form, which counts as much as ``Host`` (RFC 9112 section 3.2.2)."""
    try:
        return (URL(target).host or "").lower()
    except ValueError:
        return ""


def _find_ip(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
