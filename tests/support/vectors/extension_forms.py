"""The files of ``spec/vectors/extensions``: signatures and what is signed, gossip, and the logical hash v1."""

import base64
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.multihash import Multihash
from support.vectors.check import Check, Checks, expect, expect_rejection

__all__ = ["EXTENSION_FORMS"]

Case = Mapping[str, Any]


def _signatures(document: Case) -> Checks:
    from odf_protocol.signatures import Purpose, sign, sign_block, verify, verify_block_signature

    private_key, key = bytes.fromhex(document["privateKey"]), bytes.fromhex(document["publicKey"])

    def check_signed(case: Case) -> None:
        purpose, payload = Purpose(case["purpose"]), bytes.fromhex(case["payload"])
        expect(sign(private_key, purpose, payload).hex(), case["signature"])
        verify(key, purpose, payload, bytes.fromhex(case["signature"]))

    def check_block(case: Case) -> None:
        dataset, block_hash = DatasetId.parse(case["dataset"]), Multihash.parse(case["blockHash"])
        expect(sign_block(private_key, dataset, case["sequenceNumber"], block_hash).hex(), case["signature"])
        verify_block_signature(bytes.fromhex(case["signature"]), dataset, case["sequenceNumber"], block_hash)

    for case in document["signed"]:
        yield Check(f"signed {case['purpose']}", partial(check_signed, case))
    yield Check("signed block", partial(check_block, document["block"]))
    for case in document["rejected"]:
        key_of_case, signature = bytes.fromhex(case["publicKey"]), bytes.fromhex(case["signature"])
        attempt = partial(verify, key_of_case, Purpose.HEAD, b"payload", signature)
        yield _rejection(case, attempt)


def _heads(document: Case) -> Checks:
    from odf_protocol.heads import verify_head

    dataset = DatasetId.parse(document["dataset"])

    def check_head(case: Case) -> None:
        head = verify_head(base64.b64decode(case["document"]), dataset)
        expect(head.raw.endswith(case["payload"].encode()), True)

    for case in document["heads"]:
        yield Check(case["payload"], partial(check_head, case))
    for case in document["rejected"]:
        yield _rejection(case, partial(verify_head, base64.b64decode(case["document"]), dataset))


def _keys(document: Case) -> Checks:
    from odf_protocol.key_history import KeyHistory

    def extend(events: list[Case]) -> KeyHistory:
        raws = [base64.b64decode(case["document"]) for case in events]
        return KeyHistory.fold(DatasetId.parse(document["dataset"]), raws)

    def check_key(number: str) -> None:
        expect(str(extend(document["events"]).key_at(int(number))), document["keyAt"][number])

    def check_head(case: Case) -> None:
        signer, block_hash = DidKey.parse(case["signer"]), Multihash.parse(case["blockHash"])
        extend(document["events"]).require_head(signer, case["sequenceNumber"], block_hash)

    for number in document["keyAt"]:
        yield Check(f"key of block {number}", partial(check_key, number))
    for case in document["vouchings"]:
        what = f"head of block {case['sequenceNumber']}: {case['why']}"
        check = partial(check_head, case)
        yield Check(what, check) if case["rejectedBy"] is None else _rejection(case, check)
    for case in document["rejected"]:
        before = extend(document["events"][: case["after"]])
        yield _rejection(case, partial(before.extend, base64.b64decode(case["document"])))


def _reexecute(document: Case) -> Checks:
    from odf_protocol.step_record_codec import decode_step_record, encode_step_record

    def check_record(case: Case) -> None:
        signed = decode_step_record(base64.b64decode(case["document"]))
        expect(str(signed.hash), case["hash"])
        expect(encode_step_record(signed.record).decode(), case["payload"])

    yield Check("step record", partial(check_record, document))
    yield Check("step record with figures", partial(check_record, document["withStatistics"]))
    for case in document["rejected"]:
        yield _rejection(case, partial(decode_step_record, base64.b64decode(case["document"])))


def _attestations(document: Case) -> Checks:
    from odf_protocol.attestations import decode_attestation

    def check_attestation(case: Case) -> None:
        attestation = decode_attestation(case["envelope"].encode())
        expect(f'"verdict":"{attestation.verdict}"' in case["statement"], True)
        expect(base64.b64encode(case["statement"].encode()).decode() in case["envelope"], True)

    for number, case in enumerate(document["attestations"]):
        yield Check(f"attestation {number}", partial(check_attestation, case))
    for case in document["rejected"]:
        yield _rejection(case, partial(decode_attestation, case["envelope"].encode()))


def _equivocation(document: Case) -> Checks:
    from odf_protocol.equivocation import check_equivocation

    def check_proof(case: Case) -> None:
        proof = check_equivocation(case["proof"].encode())
        expect((str(proof.dataset_id), str(proof.signer)), (document["dataset"], document["signer"]))
        expect((proof.kind.value, proof.position), (case["kind"], case["position"]))
        expect((str(proof.first), str(proof.second)), (case["first"], case["second"]))

    for case in document["proofs"]:
        yield Check(f"proof of {case['kind']}", partial(check_proof, case))
    for case in document["rejected"]:
        yield _rejection(case, partial(check_equivocation, case["proof"].encode()))


def _gossip(document: Case) -> Checks:
    from odf_gossip_protocol import ItemKind, read_item
    from odf_gossip_protocol.ranges import IdRange, IdSet, answer_ranges, fingerprint
    from odf_protocol.peer_addresses import PeerAddress, decode_peer_record

    def check_record(case: Case) -> None:
        expect(decode_peer_record(base64.b64decode(case["document"])).raw.endswith(case["payload"].encode()), True)

    def check_address(case: Case) -> None:
        address = PeerAddress.parse(case["address"])
        expect((address.is_public, address.bucket), (case["isPublic"], case["bucket"]))

    def check_item(case: Case) -> None:
        expect(read_item(ItemKind(case["itemKind"]), base64.b64decode(case["raw"])).id.hex(), case["id"])

    def check_fingerprint(case: Case) -> None:
        ids = [bytes.fromhex(id_) for id_ in case["ids"]]
        expect(fingerprint(bytes.fromhex(case["nonce"]), ids).hex(), case["fingerprint"])

    def read_range(case: Case) -> IdRange:
        upper, print_, ids = case["upper"], case["fingerprint"], case["ids"]
        return IdRange(
            bytes.fromhex(case["lower"]),
            None if upper is None else bytes.fromhex(upper),
            None if print_ is None else bytes.fromhex(print_),
            None if ids is None else tuple(bytes.fromhex(id_) for id_ in ids),
        )

    def check_answer(case: Case) -> None:
        ids = IdSet(bytes.fromhex(id_) for id_ in case["ids"])
        answered = answer_ranges(ids, bytes.fromhex(case["nonce"]), [read_range(one) for one in case["asked"]])
        expect(answered, tuple(read_range(one) for one in case["answered"]))

    for case in document["records"]:
        yield Check(case["payload"], partial(check_record, case))
    for case in document["rejected"]:
        yield _rejection(case, partial(decode_peer_record, base64.b64decode(case["document"])))
    for case in document["addresses"]:
        yield Check(case["address"], partial(check_address, case))
    for text in document["rejectedAddresses"]:
        yield Check(text, partial(expect_rejection, "malformed", partial(PeerAddress.parse, text)))
    for case in document["items"]:
        yield Check(f"item {case['itemKind']}", partial(check_item, case))
    for case in document["fingerprints"]:
        yield Check(f"fingerprint of {len(case['ids'])}", partial(check_fingerprint, case))
    yield Check("answer to ranges", partial(check_answer, document["ranges"]))


def _logical_hash(document: Case) -> Checks:
    """Hash leaves from their bytes, and the root from the leaves; read leaves."""
    for case in document["tables"]:
        yield Check(case["what"], partial(_check_table, case))


def _check_table(case: Case) -> None:
    from odf_protocol.hashing.v1 import LOGICAL_V1_SHA2_256, leaf_count, leaf_hash, root_hash, tree_levels
    from odf_protocol.hashing.v1_types import decode_schema, encode_schema, iter_columns
    from support.leaf_reader import read_leaf

    schema = bytes.fromhex(case["schema"])
    columns = list(iter_columns(decode_schema(schema)))
    expect(encode_schema(decode_schema(schema)), schema)
    if case["content"] is not None:
        for column, content, leaves in zip(columns, case["content"], case["leaves"], strict=True):
            raw = bytes.fromhex(content)
            expect([leaf_hash([raw]).hex()], leaves)
            expect(len(read_leaf(raw, column.type, is_column=True)), case["rows"])
    expect({len(leaves) for leaves in case["leaves"]}, {leaf_count(case["rows"])})
    expect(len(case["leaves"]), len(columns))
    tops = [tree_levels([bytes.fromhex(x) for x in leaves], of_columns=False)[-1][0] for leaves in case["leaves"]]
    top = tree_levels(tops, of_columns=True)[-1][0]
    expect(str(Multihash(LOGICAL_V1_SHA2_256, root_hash(case["rows"], schema, top))), case["root"])


def _rejection(case: Case, attempt: Callable[[], Any]) -> Check:
    rule = case.get("rejectedBy")
    comment = f"{rule}: {case['why']}" if rule else str(case["why"])
    return Check(comment, partial(expect_rejection, case.get("refusal", "rejected"), attempt, clause=rule))


EXTENSION_FORMS: Mapping[str, Callable[[Case], Checks]] = {
    "signatures": _signatures,
    "heads": _heads,
    "keys": _keys,
    "replay": _reexecute,
    "attestations": _attestations,
    "equivocation": _equivocation,
    "gossip": _gossip,
    "logical-hash-v1": _logical_hash,
}
