import base64

import msgspec
import pytest

from odf_protocol.acceptance_statements import decode_acceptance, sign_acceptance
from odf_protocol.attestations import decode_attestation
from odf_protocol.did import DidKey
from odf_protocol.dsse import sign_envelope
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.in_toto import PAYLOAD_TYPE, BlockRef
from odf_protocol.policy import Policy, Trust
from odf_protocol.signatures import public_key_of
from support.chains import DATASET, hash_of, later

KEY, OTHER_KEY = b"\x05" * 32, b"\x06" * 32
FIRST, LAST = BlockRef(3, hash_of("first")), BlockRef(7, hash_of("last"))


def sign(**changes: object) -> bytes:
    fields = {
        "dataset_id": DATASET,
        "first": FIRST,
        "last": LAST,
        "policy": None,
        "trust": Trust.SIGNED,
        "replayed_steps": 0,
        "grounds": "root data: chain, rows and hashes hold",
        "time": later(0),
    }
    return sign_acceptance(KEY, **(fields | changes))  # type: ignore[arg-type]


def tampered(raw: bytes, key: bytes, change: object) -> bytes:
    statement = msgspec.json.decode(base64.b64decode(msgspec.json.decode(raw)["payload"]))
    change(statement)  # type: ignore[operator]
    return sign_envelope(key, PAYLOAD_TYPE, msgspec.json.encode(statement, order="sorted"))


def test_statement_says_what_was_accepted_and_why() -> None:
    statement = decode_acceptance(sign(policy=Policy.UNSIGNED, trust=Trust.UNSIGNED))

    assert statement.node == DidKey(public_key_of(KEY))
    assert (statement.dataset_id, statement.first, statement.last) == (DATASET, FIRST, LAST)
    assert (statement.policy, statement.trust) == (Policy.UNSIGNED, Trust.UNSIGNED)
    assert statement.grounds.startswith("root data")


def test_default_policy_is_told_from_a_named_one() -> None:
    assert decode_acceptance(sign()).policy is None


def test_statement_of_one_node_signed_by_another_is_rejected() -> None:
    with pytest.raises(RejectedError, match="ATTEST-4 signed-by-its-node"):
        decode_acceptance(tampered(sign(), OTHER_KEY, lambda statement: None))


def test_subject_that_is_not_the_last_block_is_rejected() -> None:
    def change(statement: dict) -> None:  # type: ignore[type-arg]
        statement["subject"][0]["digest"]["sha3_256"] = "0" * 64

    with pytest.raises(RejectedError, match="ATTEST-3 subject-is-the-last-block"):
        decode_acceptance(tampered(sign(), KEY, change))


def test_unknown_trust_is_malformed() -> None:
    def change(statement: dict) -> None:  # type: ignore[type-arg]
        statement["predicate"]["trust"] = "absolute"

    with pytest.raises(MalformedError, match="Trust"):
        decode_acceptance(tampered(sign(), KEY, change))


def test_range_that_ends_before_it_begins_cannot_be_signed() -> None:
    with pytest.raises(ValueError, match="ATTEST-10 range-is-not-empty"):
        sign(first=LAST, last=FIRST)


def test_acceptance_is_never_taken_for_a_replay_attestation() -> None:
    with pytest.raises(MalformedError):
        decode_attestation(sign())
