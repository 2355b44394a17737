"""By what a caller without a name is counted: the address it connects from, as its owner may have many (EX-73)."""

from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

_NETWORK_BITS: Final = 64
"""Of IPv6, whoever has one address has as many as these leave. Source: RFC 4291 section 2.5.1."""


def share_of(remote: str | None) -> str:
    """Return what shares the limits of an address: an IPv4 address, or a /64 of IPv6; headers are never read for it."""
    try:
        ip = ip_address((remote or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped or IPv6Network((ip, _NETWORK_BITS), strict=False))
    return str(ip)
