import base64
import json
from dataclasses import replace

import pytest

from odf_protocol.attestations import PREDICATE_TYPE, AttestedStep, Verdict, decode_attestation, sign_attestation
from odf_protocol.dsse import decode_envelope, sign_envelope
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.in_toto import PAYLOAD_TYPE, BlockRef
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.step_record import EngineIdentity
from support.signing import DATASET_KEY, NODE_KEY, NOON, OTHER_KEY, add_signature, dataset_of, did_key_of, some_hash

DATASET = dataset_of(DATASET_KEY)
ENGINE = EngineIdentity("spark", "4.3.0", some_hash("engine"))
FIRST, LAST = BlockRef(3, some_hash("block 3")), BlockRef(9, some_hash("block 9"))
ROWS = Multihash(ARROW0_SHA3_256, bytes(32))
STEPS = (
    AttestedStep(block=BlockRef(4, some_hash("block 4")), agrees=True, logical_hash=ROWS, step_record=some_hash("r")),
    AttestedStep(block=LAST, agrees=True, logical_hash=None),
)
DIFFERENT = replace(STEPS[0], agrees=False, difference="cells")


def attest(steps: tuple[AttestedStep, ...] = STEPS, first: BlockRef = FIRST, last: BlockRef = LAST) -> bytes:
    return sign_attestation(NODE_KEY, dataset_id=DATASET, first=first, last=last, engine=ENGINE, steps=steps, time=NOON)


def altered(**changes: object) -> bytes:
    """The node signs a statement with a changed predicate."""
    statement = json.loads(decode_envelope(attest(), payload_type=PAYLOAD_TYPE).payload)
    statement["predicate"] |= changes
    return signed(statement)


def signed(statement: object) -> bytes:
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return sign_envelope(NODE_KEY, PAYLOAD_TYPE, payload)


def test_attestation_says_what_the_node_found() -> None:
    raw = attest()
    found = decode_attestation(raw)
    assert (found.node, found.dataset_id, found.engine) == (did_key_of(NODE_KEY), DATASET, ENGINE)
    assert (found.first, found.last, found.steps, found.time) == (FIRST, LAST, STEPS, NOON)
    assert (found.verdict, found.signers, found.raw) == (Verdict.SUCCESS, (did_key_of(NODE_KEY),), raw)


def test_one_step_that_differs_makes_the_verdict_divergence() -> None:
    assert decode_attestation(attest((DIFFERENT, STEPS[1]))).verdict is Verdict.DIVERGENCE


def test_payload_is_an_in_toto_statement_about_the_last_block() -> None:
    envelope = json.loads(attest())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == PREDICATE_TYPE
    assert statement["subject"] == [{"name": f"{DATASET}/blocks/9", "digest": {"sha3_256": LAST.hash.digest.hex()}}]


def test_others_may_sign_with_the_node() -> None:
    found = decode_attestation(add_signature(attest(), OTHER_KEY))
    assert set(found.signers) == {did_key_of(NODE_KEY), did_key_of(OTHER_KEY)}
    assert found.node == did_key_of(NODE_KEY)


def test_statement_in_the_name_of_another_node_is_rejected() -> None:
    with pytest.raises(RejectedError, match="ATTEST-4"):
        decode_attestation(altered(node=str(did_key_of(OTHER_KEY))))


@pytest.mark.parametrize("verdict", ["divergence"])
def test_verdict_that_its_steps_do_not_bear_out_is_rejected(verdict: str) -> None:
    with pytest.raises(RejectedError, match="ATTEST-7"):
        decode_attestation(altered(verdict=verdict))


def test_subject_other_than_the_last_block_is_rejected() -> None:
    statement = json.loads(decode_envelope(attest(), payload_type=PAYLOAD_TYPE).payload)
    statement["subject"][0]["digest"]["sha3_256"] = "00" * 32
    with pytest.raises(RejectedError, match="ATTEST-3"):
        decode_attestation(signed(statement))


@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        pytest.param((STEPS[1], STEPS[0]), "ATTEST-5 steps-ascend", id="descending"),
        pytest.param((STEPS[0], STEPS[0]), "ATTEST-5 steps-ascend", id="twice"),
        pytest.param((replace(STEPS[0], block=BlockRef(2, some_hash("2"))),), "ATTEST-5 steps-in-range", id="before"),
        pytest.param((replace(STEPS[0], block=BlockRef(10, some_hash("10"))),), "ATTEST-5 steps-in-range", id="after"),
        pytest.param((replace(STEPS[1], block=BlockRef(9, some_hash("x"))),), "ATTEST-5 one-block-one-hash", id="hash"),
        pytest.param((replace(STEPS[0], difference="cells"),), "ATTEST-6", id="agrees-with-difference"),
        pytest.param((replace(STEPS[0], agrees=False),), "ATTEST-6", id="differs-without-difference"),
    ],
)
def test_statement_that_contradicts_itself_cannot_be_signed(steps: tuple[AttestedStep, ...], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        attest(steps)


def test_attestation_without_steps_cannot_be_signed() -> None:
    with pytest.raises(ValueError, match="malformed"):
        attest(())


@pytest.mark.parametrize(
    "changes",
    [{"verdict": "maybe"}, {"time": "yesterday"}, {"engine": {}}, {"extra": 1}, {"dataset": "did:key:x"}],
    ids=str,
)
def test_malformed_predicate_is_rejected(changes: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        decode_attestation(altered(**changes))


def test_any_flipped_byte_is_rejected() -> None:
    raw = attest((DIFFERENT,))
    for position in range(0, len(raw), 7):
        broken = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises((RejectedError, MalformedError, UnsupportedError)):
            decode_attestation(broken)
