"""The collection gathered from the reference implementation: one object, a section for each kind of vector."""

import base64
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from odf_protocol.block import decode_block, encode_block
from odf_protocol.did import DatasetId, DidKey, parse_account_id
from odf_protocol.events import SetDataSchema, SetInfo
from odf_protocol.multibase import decode_multibase, encode_base58btc
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from support.vectors.check import Check, Checks, expect
from support.vectors.forms import check_block
from support.vectors.reference_rows import iter_logical_hashes

__all__ = ["SECTIONS"]

Case = Mapping[str, Any]


def _metadata_blocks(cases: Any) -> Checks:
    for case in cases:
        for encoding in case["encodings"]:
            stated = {"block": case["block"], "hash": encoding["block_hash"], **encoding}
            yield Check(f"{case['name']}, version {encoding['version']}", partial(_check_block, stated))


def _check_block(case: Case) -> None:
    check_block(case)
    expect(len(case["bytes_hex"]) // 2, case["size"])


def _multihashes_of_text(cases: Any) -> Checks:
    for case in cases:
        found = Multihash.of_sha3_256(case["input_utf8"].encode())
        yield Check(f"sha3-256 of {case['input_utf8']}", partial(_check_multihash, case, found))


def _multihashes(cases: Any) -> Checks:
    for case in cases:
        yield Check(case["multihash"], partial(_check_multihash, case, None))


def _check_multihash(case: Case, computed: Multihash | None) -> None:
    value = Multihash.parse(case["multihash"])
    expect(str(value), case["multihash"])
    if computed is not None:
        expect(computed, value)
    if "base58btc" in case:
        expect(encode_base58btc(value.to_bytes()), case["base58btc"])
        expect(Multihash.parse(case["base58btc"]), value)
    if "short" in case:
        expect(value.short, case["short"])


def _texts_of_hashes(cases: Any) -> Checks:
    for text in cases:
        yield Check(text, partial(_check_multihash, {"multihash": text}, None))


def _dids(cases: Any) -> Checks:
    for case in cases:
        yield Check(case["did_odf"], partial(_check_did, case))


def _check_did(case: Case) -> None:
    dataset, key = DatasetId.parse(case["did_odf"]), DidKey.parse(case["did_key"])
    expect((str(dataset), str(key)), (case["did_odf"], case["did_key"]))
    expect(dataset.public_key, key.public_key)
    if "bytes_hex" in case:
        expect(DatasetId.decode(bytes.fromhex(case["bytes_hex"])), dataset)


def _account_ids(cases: Any) -> Checks:
    for text in cases:
        yield Check(text, partial(lambda text: expect(str(parse_account_id(text)), text), text))


def _timestamp_structs(cases: Any) -> Checks:
    for case in cases:
        yield Check(case["time"], partial(_check_struct, case))


def _check_struct(case: Case) -> None:
    time = Timestamp.parse(case["time"])
    expect(str(time), case["time"])
    raw = encode_block(SetInfo(), system_time=time, prev_block_hash=None, sequence_number=0)
    expect(bytes.fromhex(case["struct_hex"]) in raw, True)
    expect(decode_block(raw, expected_hash=None).system_time, time)


def _raw_arrow_schema(case: Any) -> Checks:
    yield Check(case["schema"], partial(_check_arrow_schema, case))


def _check_arrow_schema(case: Case) -> None:
    schema = bytes.fromhex(case["bytes_hex"])
    expect(base64.b64encode(schema).decode(), case["base64_in_yaml"])
    event = SetDataSchema(raw_arrow_schema=schema)
    raw = encode_block(event, system_time=Timestamp(0), prev_block_hash=None, sequence_number=0)
    expect(decode_block(raw, expected_hash=None).event, event)


def _query_commitments(document: Any) -> Checks:
    for case in document["cases"]:
        yield Check(f"query commitment {case['proofValue']}", partial(_check_commitment, document, case))


def _check_commitment(document: Case, case: Case) -> None:
    """Hash the parts that are given, and verify the signature over the hashes."""
    from odf_protocol.signatures import public_key_of, sign_bytes, verify_bytes

    private_key = bytes.fromhex(document["ed25519_seed_hex"])
    key = DidKey.parse(document["verificationMethod"]).public_key
    expect(public_key_of(private_key), key)
    for part in ("input", "output", "subQueries"):
        if not isinstance(case[part], str):  # a sentence stands where the source does not give the part
            expect(str(Multihash.of_sha3_256(_sorted_json(case[part]))), case["commitment"][f"{part}Hash"])
    signature = decode_multibase(case["proofValue"])
    verify_bytes(key, _sorted_json(case["commitment"]), signature)
    expect(sign_bytes(private_key, _sorted_json(case["commitment"])), signature)


def _sorted_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


SECTIONS: Mapping[str, Callable[[Any], Checks]] = {
    "metadata_blocks": _metadata_blocks,
    "multihash_sha3_256": _multihashes_of_text,
    "multihash_other": _multihashes,
    "linked_object_hashes_from_test_writer": _texts_of_hashes,
    "dids": _dids,
    "account_ids_accepted": _account_ids,
    "timestamp_structs": _timestamp_structs,
    "raw_arrow_schema": _raw_arrow_schema,
    "logical_hashes": iter_logical_hashes,
    "query_commitments": _query_commitments,
}
