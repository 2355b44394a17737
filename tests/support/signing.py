"""Keys and identities for tests: private keys are one repeated byte, so failures are easy to tell apart."""

import base64
import json
from functools import cache

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.dsse import sign_envelope
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import public_key_of
from odf_protocol.timestamp import Timestamp

DATASET_KEY = b"\x01" * 32
NODE_KEY = b"\x02" * 32
OTHER_KEY = b"\x03" * 32
NEW_KEY = b"\x04" * 32

NOON = Timestamp.parse("2024-05-01T12:00:00Z")


@cache
def dataset_of(private_key: bytes) -> DatasetId:
    return DatasetId(public_key_of(private_key))


@cache
def did_key_of(private_key: bytes) -> DidKey:
    return DidKey(public_key_of(private_key))


def add_signature(raw: bytes, private_key: bytes) -> bytes:
    """Sign the payload of an envelope once more, as programs of others may (DSSE-6); signing twice changes nothing."""
    known = json.loads(raw)
    added = json.loads(sign_envelope(private_key, known["payloadType"], base64.b64decode(known["payload"])))
    by_key = {signature["keyid"]: signature for signature in (*known["signatures"], *added["signatures"])}
    signatures = [by_key[keyid] for keyid in sorted(by_key)]
    return json.dumps(known | {"signatures": signatures}, sort_keys=True, separators=(",", ":")).encode()


def some_hash(text: str) -> Multihash:
    return Multihash.of_sha3_256(text.encode())
