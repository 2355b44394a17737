"""The vectors of gossip: peer records, addresses, item ids, fingerprints, answers to ranges."""

import base64
import hashlib
from typing import Any

from odf_gossip_protocol.item import Item
from odf_gossip_protocol.ranges import IdRange, IdSet, answer_ranges, fingerprint, open_ranges
from odf_protocol.canonical_json import encode_canonical
from odf_protocol.errors import MalformedError
from odf_protocol.peer_addresses import PeerAddress, _PeerRecord, decode_peer_record, sign_peer
from odf_protocol.signatures import Purpose, sign_document
from odf_protocol.timestamp import Timestamp
from support.gossip_items import attestation, head, key_events, proof, settlement
from support.signing import DATASET_KEY, NEW_KEY, NODE_KEY, NOON, OTHER_KEY, did_key_of

NONCE = bytes(range(16))
PUBLIC = ["http://8.8.4.4", "https://node.data.example.org:8443", "https://[2001:4860:4860::8888]"]
PRIVATE = [
    *("http://127.0.0.1:8080", "http://10.1.2.3", "http://169.254.169.254", "http://[::1]", "http://[::ffff:7f00:1]"),
    *("http://[64:ff9b::a00:1]", "http://localhost:8080", "http://intranet", "http://db.internal"),
]
REJECTED = [
    *("ftp://8.8.8.8", "HTTP://8.8.8.8", "http://8.8.8.8/", "http://user@8.8.8.8", "http://8.8.8.8:80"),
    *("http://2130706433", "http://0x7f.0.0.1", "http://127.1", "http://Node.example", "http://[0:0:0:0:0:0:0:1]"),
]


def gossip_vectors() -> dict[str, Any]:
    """All of them."""
    ids = [hashlib.sha3_256(bytes([number])).digest() for number in range(40)]
    here, there = IdSet(ids[:30]), IdSet(ids[5:40])
    asked = open_ranges(here, NONCE)
    return {
        "comment": "Keys are 32 equal bytes: dataset 1, node 2, other 3, next 4. Ids in ranges: SHA3-256 of one byte.",
        "records": [_record(), _record(addresses=("https://node.example:8443", "http://8.8.8.8"))],
        "rejected": [
            _refused("GOSSIP-6", "by another node than the one it names", node=str(did_key_of(OTHER_KEY))),
            _refused("GOSSIP-6", "expires when it was signed", expires=str(NOON)),
            _refused("GOSSIP-6", "holds for more than 7 days", expires=str(Timestamp(NOON.seconds + 7 * 86_400 + 1))),
            _refused("GOSSIP-6", "one address twice", addresses=("http://8.8.8.8", "http://8.8.8.8")),
            _refused("GOSSIP-8", "an address with a path", addresses=("http://8.8.8.8/x",)),
        ],
        "addresses": [
            {"address": text, "isPublic": PeerAddress(text).is_public, "bucket": PeerAddress(text).bucket}
            for text in (*PUBLIC, *PRIVATE)
        ],
        "rejectedAddresses": REJECTED,
        "items": [_item(item) for item in _items()],
        "fingerprints": [
            {"nonce": NONCE.hex(), "ids": [id_.hex() for id_ in some], "fingerprint": fingerprint(NONCE, some).hex()}
            for some in ([], sorted(ids[:1]), sorted(ids[:3]))
        ],
        "ranges": {
            "nonce": NONCE.hex(),
            "ids": [id_.hex() for id_ in there.between(bytes(32), None)],
            "asked": [_range(one) for one in asked],
            "answered": [_range(one) for one in answer_ranges(there, NONCE, asked)],
        },
    }


def _items() -> list[Item]:
    lied = proof(DATASET_KEY, 7, "a", "b")
    settled = settlement(DATASET_KEY, lied, "a")
    return [head(DATASET_KEY, 7), *key_events(DATASET_KEY, NEW_KEY), _stated(), lied, settled]


def _stated() -> Item:
    return attestation(NODE_KEY, DATASET_KEY)


def _item(item: Item) -> dict[str, Any]:
    return {"itemKind": item.kind.value, "raw": base64.b64encode(item.raw).decode(), "id": item.id.hex()}


def _record(addresses: tuple[str, ...] = ()) -> dict[str, Any]:
    record = sign_peer(
        NODE_KEY,
        addresses=tuple(map(PeerAddress, addresses)),
        time=NOON,
        expires=Timestamp(NOON.seconds + 86_400),
    )
    return {"document": base64.b64encode(record.raw).decode(), "payload": record.raw[96:].decode()}


def _refused(rule: str, why: str, **changes: Any) -> dict[str, str]:
    fields = {
        "version": 1,
        "type": "peer",
        "node": str(did_key_of(NODE_KEY)),
        "time": str(NOON),
        "expires": str(Timestamp(NOON.seconds + 86_400)),
    }
    payload = encode_canonical(_PeerRecord(**{**fields, **changes}))
    raw = sign_document(NODE_KEY, Purpose.PEER_RECORD, payload).to_bytes()
    rejection = "rejected"
    try:
        decode_peer_record(raw)
    except MalformedError:
        rejection = "malformed"
    except Exception:  # noqa: BLE001 - which error it is, the tests of the vectors say
        pass
    return {"rejectedBy": rule, "why": why, "refusal": rejection, "document": base64.b64encode(raw).decode()}


def _range(one: IdRange) -> dict[str, Any]:
    return {
        "lower": one.lower.hex(),
        "upper": None if one.upper is None else one.upper.hex(),
        "fingerprint": None if one.fingerprint is None else one.fingerprint.hex(),
        "ids": None if one.ids is None else [id_.hex() for id_ in one.ids],
    }
