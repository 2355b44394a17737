"""Addresses at which nodes say they can be reached: read strictly, told public from private, put into buckets.

An address of a peer is a stranger's word. It is kept only in one spelling, and whoever connects to it asks
``is_public`` about it first, and ``is_public_ip`` about every address that its name resolves to.

Source: clauses GOSSIP-8 to GOSSIP-10 in ``spec/extensions/gossip.md``.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Self

from odf_protocol.errors import MalformedError
from odf_protocol.public_addresses import is_public_ip

MAX_ADDRESS_CHARACTERS: Final = 160
"""What one text of a canonical document holds."""

_ADDRESS = re.compile(r"(https?)://(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,128})(?::([1-9][0-9]{0,4}))?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_TOP_LABEL = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
"""Begins with a letter: ``0x7f.1`` or ``2130706433`` is an IPv4 address to some resolvers, never a name here."""

_DEFAULT_PORT: Final = {"http": 80, "https": 443}
_HIGHEST_PORT: Final = 65_535
_PRIVATE_NAMES: Final = ("localhost", "local", "internal", "home.arpa")  # RFC 6761, RFC 6762, RFC 8375, ICANN 2024


@dataclass(frozen=True, slots=True, order=True)
class PeerAddress:
    """Scheme, host and port of a node, in the one spelling that is kept: ``https://node.example:8443``.

    Attributes:
        text: The address.
        host: Host without brackets.
        port: Port, the scheme's own where none is written.
        is_public: Whether it can be one of the public internet, as far as its text says.
        bucket: What one owner is likely to hold more of than one: a /16 or /32 network, the end of a name; a private
            address is a bucket of its own.
    """

    text: str
    host: str = field(init=False, compare=False, repr=False)
    port: int = field(init=False, compare=False, repr=False)
    is_public: bool = field(init=False, compare=False, repr=False)
    bucket: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        host, port = _split(self.text)
        ip = _find_ip(host)
        is_public = _is_public_name(host) if ip is None else is_public_ip(ip)
        bucket = self.text
        if is_public:
            bucket = "name " + ".".join(host.split(".")[-2:]) if ip is None else bucket_of_ip(ip)
        for name, value in (("host", host), ("port", port), ("is_public", is_public), ("bucket", bucket)):
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address.

        Raises:
            MalformedError: Another scheme, a user, a path, a host that is no plain name or IP address, or another
                spelling of one that would be fine.
        """
        return cls(text)

    @classmethod
    def of(cls, scheme: str, host: str, port: int) -> Self:
        """Make one of parts that others have read, however they spell a host that is an IP address.

        Args:
            scheme: ``http`` or ``https``.
            host: Without brackets.
            port: TCP port.

        Raises:
            MalformedError: As ``parse``.
        """
        ip = _find_ip(host)
        spelled = host if ip is None else _spell(ip)
        return cls(f"{scheme}://{spelled}" + ("" if port == _DEFAULT_PORT.get(scheme) else f":{port}"))

    def __str__(self) -> str:
        return self.text


def bucket_of_ip(ip: IPv4Address | IPv6Address) -> str:
    """Return the bucket of a public IP address; of a private one, the address itself."""
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if not is_public_ip(ip):
        return str(ip)
    packed = ip.packed
    return f"{packed[0]}.{packed[1]}" if len(packed) == 4 else packed[:4].hex(":", 2)


def _find_ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _split(text: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(text) if len(text) <= MAX_ADDRESS_CHARACTERS else None
    if found is None:
        raise MalformedError("peer address", expected="http(s)://host[:port] in lower case", found=repr(text))
    scheme, host, port_text = found.groups()
    port = int(port_text) if port_text else _DEFAULT_PORT[scheme]
    if port > _HIGHEST_PORT or (port_text and port == _DEFAULT_PORT[scheme]):
        raise MalformedError("peer address port", expected="at most 65535, absent if usual", found=port)
    bare = host.strip("[]")
    ip = _find_ip(bare)
    if ip is not None:
        if _spell(ip) != host:
            raise MalformedError("peer address host", expected=_spell(ip), found=host)
    elif host.startswith("[") or not _is_name(host):
        raise MalformedError("peer address host", expected="a name or an IP address", found=repr(host))
    return bare, port


def _spell(ip: IPv4Address | IPv6Address) -> str:
    """Spell an IP address as it stands in a URL."""
    if isinstance(ip, IPv4Address):
        return str(ip)
    # Python writes the last half of these with dots from 3.13 on; nodes have to agree, whatever runs them.
    mapped = ip.ipv4_mapped
    return f"[{ip}]" if mapped is None else f"[::ffff:{int(mapped) >> 16:x}:{int(mapped) & 0xFFFF:x}]"


def _is_public_name(host: str) -> bool:
    return "." in host and not any(host == name or host.endswith(f".{name}") for name in _PRIVATE_NAMES)


def _is_name(host: str) -> bool:
    *labels, top = host.split(".")
    return bool(_TOP_LABEL.fullmatch(top)) and all(_LABEL.fullmatch(label) for label in labels)
