"""Peer records: a node says under which addresses it can be reached, and until when that holds.

Source: clauses GOSSIP-5 to GOSSIP-7 in ``spec/extensions/gossip.md``.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import msgspec

from odf_protocol.canonical_json import Document, Text, decode_canonical, encode_canonical, parse_exact
from odf_protocol.did import DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.gossip.addresses import PeerAddress
from odf_protocol.signatures import Purpose, SignedDocument, public_key_of, sign_document
from odf_protocol.timestamp import Timestamp

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
    raw = sign_document(private_key, Purpose.PEER_RECORD, encode_canonical(record)).to_bytes()
    try:
        return decode_peer_record(raw)
    except RejectedError as error:
        raise ValueError(str(error)) from error


def decode_peer_record(raw: bytes) -> PeerRecord:
    """Verify and read a peer record.

    Raises:
        MalformedError: Not a signed peer record.
        RejectedError: Its signature or its content breaks a rule.
    """
    document = SignedDocument.decode(raw, Purpose.PEER_RECORD, max_payload_bytes=MAX_PEER_RECORD_BYTES)
    said = decode_canonical(document.payload, _PeerRecord, what="peer record", max_bytes=MAX_PEER_RECORD_BYTES)
    record = PeerRecord(
        node=parse_exact(DidKey, said.node, "peer record node"),
        addresses=tuple(PeerAddress.parse(text) for text in said.addresses),
        time=parse_exact(Timestamp, said.time, "peer record time"),
        expires=parse_exact(Timestamp, said.expires, "peer record expiry"),
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
