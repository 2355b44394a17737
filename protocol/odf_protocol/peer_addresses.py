"""Addresses at which nodes can be reached, and the signed records in which they say so.

An address of a peer is a stranger's word. It is read strictly and kept only in one spelling, told public from private,
and put into a bucket. Whoever connects to it asks ``is_public`` about it first, and ``is_public_ip`` about every
address that its name resolves to. A record holds for some days.

Source: clauses GOSSIP-5 to GOSSIP-10 in ``spec/plug-ins/gossip.md``.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Final, Literal, Self

import msgspec

from odf_protocol.canonical_json import Document, Text, decode_canonical, encode_canonical, parse_exact
from odf_protocol.did import DidKey
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.public_addresses import is_public_ip
from odf_protocol.signatures import Purpose, SignedDocument, public_key_of, sign_readable
from odf_protocol.timestamp import Timestamp

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


MAX_ADDRESSES: Final = 4  # guess: two families, a name, an onion-like one
MAX_PEER_RECORD_BYTES: Final = 1024
"""Payload. Four addresses at their longest and everything else take about 900 bytes."""
MAX_RECORD_DAYS: Final = 7  # guess: an address that nobody confirmed for a week is not worth a connection
_DAY_S: Final = 86_400


class _PeerRecord(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["peer"]
    node: Text
    addresses: Annotated[tuple[Text, ...], msgspec.Meta(max_length=MAX_ADDRESSES)] = ()
    time: Text
    expires: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRecord:
    """A node's own word about itself; made by ``decode_peer_record`` only, so the node has signed it.

    Attributes:
        node: Who speaks.
        addresses: Where it can be reached, best first; none for a node that only asks and is never asked.
        time: When it was signed, by the node's clock.
        expires: From when on nobody may use it.
        raw: The document as received.
    """

    node: DidKey
    addresses: tuple[PeerAddress, ...]
    time: Timestamp
    expires: Timestamp
    raw: bytes = field(repr=False)


def sign_peer(
    private_key: bytes, *, addresses: tuple[PeerAddress, ...], time: Timestamp, expires: Timestamp
) -> PeerRecord:
    """Sign a record about the node that holds the key.

    Raises:
        ValueError: Something that no record can say, such as an expiry before ``time``.
    """
    record = _PeerRecord(
        version=1,
        type="peer",
        node=str(DidKey(public_key_of(private_key))),
        addresses=tuple(str(address) for address in addresses),
        time=str(time),
        expires=str(expires),
    )
    return decode_peer_record(
        sign_readable(private_key, Purpose.PEER_RECORD, encode_canonical(record), decode_peer_record)
    )


def decode_peer_record(raw: bytes) -> PeerRecord:
    """Verify and read a peer record.

    Raises:
        MalformedError: Not a signed peer record.
        RejectedError: Its signature or its content breaks a rule.
    """
    document = SignedDocument.decode(raw, Purpose.PEER_RECORD, max_payload_bytes=MAX_PEER_RECORD_BYTES)
    stated = decode_canonical(document.payload, _PeerRecord, what="peer record", max_bytes=MAX_PEER_RECORD_BYTES)
    record = PeerRecord(
        node=parse_exact(DidKey, stated.node, "peer record node"),
        addresses=tuple(PeerAddress.parse(text) for text in stated.addresses),
        time=parse_exact(Timestamp, stated.time, "peer record time"),
        expires=parse_exact(Timestamp, stated.expires, "peer record expiry"),
        raw=bytes(raw),
    )
    if record.node != document.signer:
        raise RejectedError("GOSSIP-6 record-signed-by-its-node", expected=record.node, found=document.signer)
    if len(set(record.addresses)) != len(record.addresses):
        raise RejectedError("GOSSIP-6 addresses-once", found=[str(address) for address in record.addresses])
    if not 0 < record.expires.seconds - record.time.seconds <= MAX_RECORD_DAYS * _DAY_S:
        expected = f"after {record.time}, at most {MAX_RECORD_DAYS} days"
        raise RejectedError("GOSSIP-6 expires-in-time", expected=expected, found=record.expires)
    return record
