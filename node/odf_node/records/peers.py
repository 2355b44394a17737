"""Other nodes."""

from dataclasses import dataclass

from odf_protocol.did import DidKey
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A node at an address.

    ``node_key`` is the identity that was seen first there (None: it named none, as plain ODF servers do).
    ``publisher_keys`` are keys of others that it vouches to publish for, in the order they were learned.
    """

    url: str
    node_key: DidKey | None
    publisher_keys: tuple[DidKey, ...] = ()
    first_seen: Timestamp


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item as it is kept; read again, and so verified again, when the node starts."""

    id: bytes
    kind: str
    raw: bytes
