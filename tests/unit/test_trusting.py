"""Policies at work in a node: auditors are counted, their words are kept, and what rests on what is shown."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from odf_node.acceptance.statements import MAX_UNTRUSTED
from odf_node.composition import Node
from odf_node.errors import ProposalRejectedError
from odf_node.exchange.taking import PullRequest
from odf_protocol.accept_policy_text import parse_policies
from odf_protocol.errors import MalformedError
from odf_protocol.in_toto import BlockRef
from odf_protocol.policy import Trust
from odf_protocol.statements import decode_statement, list_witnesses
from odf_protocol.verification_statements import Checked, VerificationProblem, sign_verification
from support.offering_peer import OfferingPeer
from support.offers import NOW, Judge, PeerChain, root_chain
from support.signing import NEW_KEY, NODE_KEY, OTHER_KEY, did_key_of

ALICE, BOB = b"\x21" * 32, b"\x22" * 32
POLICIES = f"""\
kind: AcceptPolicies
version: 1
auditors:
  alice: {did_key_of(ALICE)}
  bob: {did_key_of(BOB)}
default:
  accept: attested
  threshold: 2
"""


def statement(
    key: bytes, chain: PeerChain, *, first: int = 0, problem: VerificationProblem | None = None, **counts: int
) -> bytes:
    blocks = chain.blocks[first:]
    checked = Checked(blocks=len(blocks), slices=2, slices_in_range=2, rows=6, steps=0, steps_in_range=0)
    return sign_verification(
        key,
        dataset_id=chain.id,
        first=BlockRef(blocks[0].sequence_number, blocks[0].hash),
        last=BlockRef(blocks[-1].sequence_number, blocks[-1].hash),
        checked=msgspec.structs.replace(checked, **counts),
        problem=problem,
        time=NOW,
    )


def pull(node: Node, chain: PeerChain, *statements: bytes) -> Any:
    peer = OfferingPeer(chain, statements=statements)
    return asyncio.run(node.taking.take(peer, PullRequest(url="http://peer.example/cities", name="cities")))


def test_two_of_two_auditors_are_counted_recorded_and_kept(node: Node, chain: PeerChain) -> None:
    node.home.folder.policies.write_text(POLICIES)

    report = pull(node, chain, statement(ALICE, chain), statement(BOB, chain), b"rubbish")

    assert report.record.trust is Trust.ATTESTED
    (acceptance,) = node.store.iter_acceptances(chain.id)
    detail = acceptance.grounds.to_json()
    assert [auditor["name"] for auditor in detail["auditors"]] == ["alice", "bob"]
    assert detail["rule"] == "the default of policies.yaml (line 7)"
    attesters = {item.attester for item in node.store.iter_attestations(chain.id)}
    assert {did_key_of(ALICE), did_key_of(BOB)} < attesters


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(lambda chain: statement(ALICE, chain), id="the same auditor twice"),
        pytest.param(lambda chain: statement(OTHER_KEY, chain), id="a stranger"),
        pytest.param(lambda chain: statement(BOB, chain, slices=1), id="a sample"),
        pytest.param(lambda chain: statement(BOB, chain.up_to(2), slices=1, slices_in_range=1), id="an older range"),
        pytest.param(
            lambda chain: statement(BOB, chain.replacing(3, lambda e: replace(e, prev_offset=None))), id="another chain"
        ),
        pytest.param(lambda chain: statement(BOB, chain)[:-9] + b'AAAAAA"}]}', id="a forged signature"),
    ],
)
def test_what_is_no_second_auditor_does_not_count(node: Node, judge: Judge, chain: PeerChain, second: Any) -> None:
    node.home.folder.policies.write_text(POLICIES)
    before = judge.snapshot()

    with pytest.raises(ProposalRejectedError) as caught:
        pull(node, chain, statement(ALICE, chain), second(chain))

    assert caught.value.rule == "POLICY-6 enough-auditors-attest"
    assert judge.snapshot() == before


def test_named_auditor_who_found_a_problem_stops_the_acceptance(node: Node, chain: PeerChain) -> None:
    node.home.folder.policies.write_text(POLICIES)
    found = statement(BOB, chain, problem=VerificationProblem("ROWS-5 logical-hash", "it differs", 3))

    with pytest.raises(ProposalRejectedError, match="contradicted by bob"):
        pull(node, chain, statement(ALICE, chain), statement(BOB, chain), found)


def test_attestations_that_come_later_are_kept_and_change_what_the_rule_says_today(
    node: Node, chain: PeerChain
) -> None:
    pull(node, chain)
    record = node.store.find_dataset(chain.id)
    assert record is not None
    policies = parse_policies(POLICIES, source_name="other.yaml")
    (change,) = node.trust.list_changes(policies)
    assert (change.before.decision.trust, change.after.decision.accepted) == (Trust.SIGNED, False)

    assert pull(node, chain, statement(ALICE, chain), statement(BOB, chain)).new_blocks == 0

    (change,) = node.trust.list_changes(policies)
    assert (change.before.decision.trust, change.after.decision.trust) == (Trust.SIGNED, Trust.ATTESTED)
    node.home.folder.policies.write_text(POLICIES)
    alice = node.trust.find_auditor("alice")
    assert alice is not None
    found = node.trust.describe_auditor(alice)
    assert [row["dataset"] for row in found["withoutIt"]] == ["cities"]
    assert [row["says"] for row in found["statements"]] == ["valid: 6 rows of 2 of 2 slices"]
    described = node.trust.describe_dataset(record)
    assert (described["restsOn"], described["wouldRestOn"]) == ("signed", "attested")
    peer = node.trust.describe_peer("http://peer.example")
    assert [row["dataset"] for row in peer["taken"]] == ["cities"]


def test_strangers_fill_no_more_than_their_share(node: Node, chain: PeerChain) -> None:
    pull(node, chain, *(statement(bytes([n]) * 32, chain) for n in range(100, 100 + MAX_UNTRUSTED + 20)))

    kept = [item for item in node.store.iter_attestations(chain.id) if item.attester != did_key_of(NODE_KEY)]
    assert MAX_UNTRUSTED <= len(kept) <= MAX_UNTRUSTED + 1  # and this node's own


def test_broken_policies_open_no_door(node: Node, judge: Judge, chain: PeerChain) -> None:
    node.home.folder.policies.write_text(POLICIES.replace("threshold: 2", "threshold: two"))
    before = judge.snapshot()

    with pytest.raises(MalformedError, match=r"policies\.yaml:8:14"):
        pull(node, chain)
    assert judge.snapshot() == before


def test_statement_about_another_dataset_is_no_witness(chain: PeerChain, tmp_path: Path) -> None:
    other = root_chain(tmp_path, key=NEW_KEY)
    witnesses = list_witnesses(chain.id, chain.blocks, {}, [decode_statement(statement(ALICE, other))])
    assert [w.vouchers for w in witnesses] == [frozenset(), frozenset()]
