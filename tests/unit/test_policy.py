from dataclasses import replace

import pytest

from odf_protocol.events import DatasetKind
from odf_protocol.policy import (
    AcceptRule,
    Auditor,
    EngineHere,
    Policy,
    Proof,
    Trust,
    Witness,
    decide,
    decide_on_metadata,
    weakest,
)
from support.signing import NEW_KEY, NODE_KEY, OTHER_KEY, did_key_of

ALICE, BOB, CAROL = (
    Auditor(name, did_key_of(key)) for name, key in (("alice", NODE_KEY), ("bob", NEW_KEY), ("carol", OTHER_KEY))
)
TWO_OF_THREE = AcceptRule(
    name="rule 1", policy=Policy.ATTESTED, auditors=(ALICE, BOB, CAROL), threshold=2, first_contact=True
)
ROOT, DERIVATIVE = DatasetKind.ROOT, DatasetKind.DERIVATIVE


def test_signed_root_is_accepted_on_its_signatures_by_default() -> None:
    decision = decide(None, Proof(kind=ROOT, signed=True))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.SIGNED, False)


def test_signed_derivative_is_reexecuted_by_default() -> None:
    decision = decide(None, Proof(kind=DERIVATIVE, signed=True))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.REEXECUTED, True)


@pytest.mark.parametrize("policy", [None, Policy.REEXECUTE, Policy.INTEGRITY])
@pytest.mark.parametrize("kind", [ROOT, DERIVATIVE])
def test_unsigned_dataset_is_rejected_unless_the_user_names_it(policy: Policy | None, kind: DatasetKind) -> None:
    decision = decide(policy, Proof(kind=kind, signed=False))

    assert not decision.accepted
    assert "--policy unsigned" in decision.fix


def test_unsigned_root_under_the_unsigned_policy_is_shown_as_unsigned() -> None:
    decision = decide(Policy.UNSIGNED, Proof(kind=ROOT, signed=False))

    assert (decision.accepted, decision.trust) == (True, Trust.UNSIGNED)


def test_unsigned_derivative_that_can_be_reexecuted_is_reexecuted_and_stays_unsigned() -> None:
    decision = decide(Policy.UNSIGNED, Proof(kind=DERIVATIVE, signed=False))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.UNSIGNED, True)


@pytest.mark.parametrize("lacking", ["engine_available", "inputs_accepted"])
def test_derivative_that_cannot_be_reexecuted_is_rejected_with_what_is_missing(lacking: str) -> None:
    proof = Proof(kind=DERIVATIVE, signed=True, missing="the engine 'flink'", **{lacking: False})

    decision = decide(None, proof)

    assert not decision.accepted
    assert "the engine 'flink'" in decision.reason


@pytest.mark.parametrize("lacking", ["engine_available", "inputs_accepted"])
def test_derivative_that_cannot_be_reexecuted_is_taken_as_signed_only_under_integrity(lacking: str) -> None:
    decision = decide(Policy.INTEGRITY, Proof(kind=DERIVATIVE, signed=True, **{lacking: False}))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.SIGNED, False)


def test_no_policy_ever_calls_unexecuted_data_reexecuted() -> None:
    for policy in (None, TWO_OF_THREE, *Policy):
        for signed in (True, False):
            for possible in (True, False):
                decision = decide(policy, Proof(kind=DERIVATIVE, signed=signed, engine_available=possible))
                assert decision.reexecute or decision.trust is not Trust.REEXECUTED
                assert signed or decision.trust in {None, Trust.UNSIGNED}


def test_weakest_of_several_grounds_is_shown() -> None:
    assert weakest([Trust.REEXECUTED, Trust.UNSIGNED, Trust.SIGNED]) is Trust.UNSIGNED
    assert weakest([Trust.OWN, Trust.REEXECUTED]) is Trust.REEXECUTED


def attested(*vouchers: set[Auditor], denied: set[Auditor] | None = None) -> Proof:
    witnesses = tuple(
        Witness(n, frozenset(a.key for a in group), frozenset(a.key for a in denied or set()))
        for n, group in enumerate(vouchers)
    )
    return Proof(kind=DERIVATIVE, signed=True, engine_available=False, witnesses=witnesses)


def test_enough_named_auditors_are_proof_without_re_execution() -> None:
    decision = decide(TWO_OF_THREE, attested({ALICE, BOB}, {BOB, CAROL}))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.ATTESTED, False)
    assert decision.rests_on == (ALICE, BOB, CAROL)


def test_each_block_needs_enough_auditors_of_its_own() -> None:
    decision = decide(TWO_OF_THREE, attested({ALICE, BOB, CAROL}, {BOB}))

    assert (decision.accepted, decision.rule) == (False, "POLICY-6 enough-auditors-attest")
    assert "block 1 is attested by bob, not by alice, carol" in decision.reason


def test_stranger_does_not_count_as_an_auditor() -> None:
    rule = AcceptRule(name="r", policy=Policy.ATTESTED, auditors=(ALICE,), threshold=1)

    assert not decide(rule, attested({BOB, CAROL})).accepted


def test_one_named_auditor_who_contradicts_is_enough_to_reject() -> None:
    decision = decide(TWO_OF_THREE, attested({ALICE, BOB}, denied={CAROL}))

    assert (decision.accepted, decision.rule) == (False, "POLICY-6 no-named-auditor-contradicts")


def test_stranger_who_contradicts_cannot_stop_an_acceptance() -> None:
    rule = AcceptRule(name="r", policy=Policy.ATTESTED, auditors=(ALICE,), threshold=1)

    assert decide(rule, attested({ALICE}, denied={BOB})).accepted


def test_attestations_do_not_stand_in_for_signatures() -> None:
    proof = Proof(kind=ROOT, signed=False, witnesses=(Witness(2, frozenset({ALICE.key, BOB.key})),))

    assert decide(TWO_OF_THREE, proof).rule.startswith("ACCEPT-3")


@pytest.mark.parametrize(
    ("is_new", "named", "accepted"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_first_contact_can_be_rejected_unless_the_identity_was_named(is_new: bool, named: bool, accepted: bool) -> None:
    rule = AcceptRule(name="r", policy=Policy.INTEGRITY, first_contact=False)

    assert decide(rule, Proof(kind=ROOT, signed=True, is_new=is_new, identity_named=named)).accepted is accepted


@pytest.mark.parametrize("policy", [None, Policy.REEXECUTE, Policy.INTEGRITY])
@pytest.mark.parametrize("kind", [ROOT, DERIVATIVE])
def test_metadata_alone_never_rest_on_more_than_metadata(policy: Policy | None, kind: DatasetKind) -> None:
    decision = decide_on_metadata(policy, Proof(kind=kind, signed=True))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.METADATA, False)
    assert "not looked at" in decision.reason
    assert ("steps" in decision.reason) is (kind is DERIVATIVE)
    with_files = decide_on_metadata(policy, Proof(kind=kind, signed=True), has_files=True)
    assert (with_files.trust, "files hold" in with_files.reason) == (Trust.METADATA, True)
    assert not decide_on_metadata(policy, Proof(kind=kind, signed=False)).accepted


def test_metadata_alone_need_the_auditors_that_the_rule_asks_for() -> None:
    assert not decide_on_metadata(TWO_OF_THREE, attested({ALICE})).accepted
    decision = decide_on_metadata(TWO_OF_THREE, attested({ALICE, BOB}))
    assert (decision.trust, decision.rests_on) == (Trust.METADATA, (ALICE, BOB))


def test_metadata_alone_are_the_weakest_ground() -> None:
    assert weakest(Trust) is Trust.METADATA


# Derivatives that are not their query over the whole input (PLAN-9 to PLAN-11)

GAP = Proof(kind=DERIVATIVE, signed=True, lapses="block 3 leaves out rows 0 to 9 of x", partial="block 3 leaves out x")
LATE = Proof(kind=DERIVATIVE, signed=True, is_late=True, partial="no step is of the query in force")


@pytest.mark.parametrize("policy", [None, Policy.REEXECUTE])
@pytest.mark.parametrize(("proof", "rule"), [(GAP, "PLAN-9"), (LATE, "PLAN-11")], ids=["gap", "late"])
def test_what_is_not_the_whole_is_not_taken_as_re_executed(policy: Policy | None, proof: Proof, rule: str) -> None:
    decision = decide(policy, proof)

    assert (decision.accepted, decision.ground, decision.reexecute) == (False, None, False)
    assert decision.rule.startswith(rule)
    assert "--policy integrity" in decision.fix


@pytest.mark.parametrize("proof", [GAP, LATE], ids=["gap", "late"])
def test_part_that_is_taken_on_its_signatures_claims_nothing_about_the_query(proof: Proof) -> None:
    assert decide(Policy.INTEGRITY, proof).ground == "signed"


def test_part_that_auditors_attest_is_shown_as_partial() -> None:
    witness = Witness(3, vouchers=frozenset({ALICE.key, BOB.key}))

    decision = decide(TWO_OF_THREE, replace(GAP, witnesses=(witness,)))

    assert (decision.accepted, decision.ground) == (True, "attested (partial: block 3 leaves out x)")
    assert "(partial: block 3 leaves out x)" in decision.reason


def test_rows_of_an_earlier_query_are_taken_and_shown_as_partial() -> None:
    proof = Proof(kind=DERIVATIVE, signed=True, partial="rows 0 to 9 are of an earlier query")

    decision = decide(None, proof)

    assert decision.ground == "re-executed (partial: rows 0 to 9 are of an earlier query)"


def test_unsigned_part_that_is_re_executed_says_so_in_its_grounds() -> None:
    decision = decide(Policy.UNSIGNED, replace(GAP, signed=False))

    assert (decision.accepted, decision.ground, decision.reexecute) == (True, "unsigned", True)
    assert "(partial: block 3 leaves out x)" in decision.reason


@pytest.mark.parametrize(
    ("counted", "accepted"),
    [((), True), (("mine",), True), (("f1620aa",), True), (("spark", "f1620bb"), False), (("mine2",), False)],
)
def test_re_execution_by_an_engine_that_does_not_count_is_no_proof(counted: tuple[str, ...], accepted: bool) -> None:
    """POLICY-10."""
    rule = AcceptRule(name="rule 2", policy=Policy.REEXECUTE, engines=counted)
    decision = decide(rule, Proof(kind=DERIVATIVE, signed=True, engines=(EngineHere("mine", "f1620aa"),)))
    assert decision.accepted is accepted
    if not accepted:
        assert "rule 2 does not count engine 'mine' (digest f1620aa)" in decision.reason
        assert decision.rule == "POLICY-10 engine-counts"


def test_every_engine_of_a_chain_has_to_count() -> None:
    rule = AcceptRule(name="rule 2", policy=Policy.REEXECUTE, engines=("spark",))
    engines = (EngineHere("spark", "f1620aa"), EngineHere("gone", ""))
    decision = decide(rule, Proof(kind=DERIVATIVE, signed=True, engines=engines))
    assert (decision.accepted, "does not count engine 'gone'" in decision.reason) == (False, True)


def test_roots_need_no_engine() -> None:
    rule = AcceptRule(name="rule 2", policy=Policy.REEXECUTE, engines=("spark",))
    assert decide(rule, Proof(kind=ROOT, signed=True)).accepted
