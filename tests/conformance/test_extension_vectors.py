"""The published vectors of our extensions: they are what the program writes, and what it accepts and rejects."""

import base64
import json
from typing import Any

import pytest

from odf_protocol.attestations import decode_attestation
from odf_protocol.did import DatasetId
from odf_protocol.equivocation import check_equivocation
from odf_protocol.errors import RejectedError
from odf_protocol.heads import verify_head
from odf_protocol.key_history import KeyHistory
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, verify, verify_block_signature
from odf_protocol.step_record_codec import decode_step_record
from run_vectors import iter_checks
from support.extension_vectors import BUILDERS, FOLDER, step_record, tables, text_of
from support.logical_hash import hash_table


def load(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BUILDERS)
def test_published_vectors_are_what_the_program_writes(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == text_of(name)


@pytest.mark.parametrize("name", BUILDERS)
def test_vectors_run_as_those_of_odf_do(name: str) -> None:
    checks = list(iter_checks(load(name)))
    assert len(checks) > 2
    assert [(check.comment, failure) for check in checks if (failure := check.find_failure())] == []


@pytest.mark.parametrize("name", BUILDERS)
def test_vectors_that_state_something_else_are_reported(name: str) -> None:
    """The runner does look: what is rejected is not accepted, and the other way round."""
    document = load(name)
    parts = ("signed", "heads", "events", "attestations", "proofs", "records", "tables", "document")
    accepted = next(part for part in parts if part in document)
    if accepted == "document":
        document["rejected"][0]["document"] = document["document"]
    elif accepted == "signed":
        document["rejected"][0] |= {"publicKey": document["publicKey"], "signature": document["signed"][0]["signature"]}
    elif accepted == "tables":
        document["tables"][0]["root"] = document["tables"][1]["root"]
    elif accepted == "events":
        document["keyAt"]["20"] = document["keyAt"]["0"]
    else:
        document["rejected"][0] |= document[accepted][0]
    assert any(check.find_failure() for check in iter_checks(document))


def test_signatures_are_accepted_and_rejected_as_published() -> None:
    vectors = load("signatures")
    key = bytes.fromhex(vectors["publicKey"])
    for case in vectors["signed"]:
        verify(key, Purpose(case["purpose"]), bytes.fromhex(case["payload"]), bytes.fromhex(case["signature"]))
    block = vectors["block"]
    verify_block_signature(
        bytes.fromhex(block["signature"]),
        DatasetId.parse(block["dataset"]),
        block["sequenceNumber"],
        Multihash.parse(block["blockHash"]),
    )
    for case in vectors["rejected"]:
        with pytest.raises(RejectedError, match=case["rejectedBy"]):
            verify(bytes.fromhex(case["publicKey"]), Purpose.HEAD, b"payload", bytes.fromhex(case["signature"]))


def test_heads_and_keys_are_accepted_as_published() -> None:
    vectors = load("heads")
    for case in vectors["heads"]:
        head = verify_head(base64.b64decode(case["document"]), DatasetId.parse(vectors["dataset"]))
        assert head.raw[96:].decode() == case["payload"]
    vectors = load("keys")
    history = KeyHistory.start(DatasetId.parse(vectors["dataset"]))
    for case in vectors["events"]:
        history = history.extend(base64.b64decode(case["document"]))
    assert {number: str(history.key_at(int(number))) for number in vectors["keyAt"]} == vectors["keyAt"]


def test_records_findings_and_proofs_are_accepted_as_published() -> None:
    vectors = load("replay")
    signed = decode_step_record(base64.b64decode(vectors["document"]))
    assert (signed.record, str(signed.hash)) == (step_record(), vectors["hash"])
    verdicts = [decode_attestation(case["envelope"].encode()).verdict for case in load("attestations")["attestations"]]
    assert verdicts == ["success", "divergence"]
    vectors = load("equivocation")
    for case in vectors["proofs"]:
        proof = check_equivocation(case["proof"].encode())
        assert (str(proof.dataset_id), str(proof.signer)) == (vectors["dataset"], vectors["signer"])
        assert (proof.kind.value, proof.position) == (case["kind"], case["position"])
        assert (str(proof.first), str(proof.second)) == (case["first"], case["second"])


def test_roots_are_as_published() -> None:
    vectors = load("logical-hash-v1")
    roots = {case["what"]: case["root"] for case in vectors["tables"]}
    assert len(set(roots.values())) == len(roots)
    assert roots == {what: str(hash_table(batch.schema, [batch]).root) for what, batch in tables().items()}
