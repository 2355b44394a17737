"""Addresses that strangers name: which are of the public internet, and which nobody but a peer has named.

Every IP address is judged in one place. The lists stand here, not in the interpreter: what ``ipaddress`` calls global
changed between releases of Python, and lacks addresses that carry others inside. Addresses that only a peer named are
told from those that the operator typed by how they are written.

Source: IANA "IPv4 Special-Purpose Address Registry", "IPv6 Special-Purpose Address Registry", "IPv6 Global Unicast
Address Assignments"; clauses GOSSIP-9 and GOSSIP-57 in ``spec/plug-ins/gossip.md``.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

_NOT_PUBLIC_V4: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network; 0.0.0.0 is this machine to many
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by the customers of a provider
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, and the metadata of clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays from 6to4, given up
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""All that is assigned to anybody: what is outside (``fc00::/7``, ``fe80::/10``, ``fec0::/10``, ``ff00::/8``,
``64:ff9b:1::/48``, ``100::/64``, ``5f00::/16``) is no one's in the public internet."""
_NOT_PUBLIC_V6: Final = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052
_COMPATIBLE: Final = IPv6Network("::/96")  # RFC 4291 section 2.5.5.1
_MAPPED: Final = IPv6Network("::ffff:0:0/96")  # RFC 4291 section 2.5.5.2
_TRANSLATED: Final = IPv6Network("::ffff:0:0:0/96")  # RFC 2765
_TO_PUBLIC: Final = (_NAT64, _MAPPED)
"""Packets to these go where the IPv4 address inside leads; the other two are nobody's today."""


def is_public_ip(ip: IPv4Address | IPv6Address) -> bool:
    """Tell whether packets to an address leave for the public internet, also when it carries another one inside."""
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _NOT_PUBLIC_V4)
    if not all(is_public_ip(inner) for inner in _iter_carried(ip)):
        return False
    if any(ip in network for network in _TO_PUBLIC):
        return True
    return ip in _GLOBAL_UNICAST and not any(ip in network for network in _NOT_PUBLIC_V6)


def is_public_host(host: str) -> bool | None:
    """Tell the same of an address as it stands in a URL, without brackets; None: it is a name, judged when resolved."""
    try:
        return is_public_ip(ip_address(host.partition("%")[0]))
    except ValueError:
        return None


def _iter_carried(ip: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address carries."""
    if any(ip in network for network in (_NAT64, _COMPATIBLE, _MAPPED, _TRANSLATED)):
        yield IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip.sixtofour is not None:
        yield ip.sixtofour
    if ip.teredo is not None:
        yield from ip.teredo


_MARK: Final = "heard+"


def as_heard(url: str) -> str:
    """Mark an address as hearsay, so that whoever uses it later knows."""
    return url if is_heard(url) else _MARK + url


def is_heard(url: str) -> bool:
    """Say whether an address is hearsay."""
    return url.startswith(_MARK)


def without_mark(url: str) -> str:
    """Return the address itself."""
    return url.removeprefix(_MARK)
