import pytest

from odf_protocol.events import DatasetKind
from odf_protocol.policy import Policy, Proof, Trust, decide, weakest

ROOT, DERIVATIVE = DatasetKind.ROOT, DatasetKind.DERIVATIVE


def test_signed_root_is_accepted_on_its_signatures_by_default() -> None:
    decision = decide(None, Proof(kind=ROOT, signed=True))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.SIGNED, False)


def test_signed_derivative_is_reexecuted_by_default() -> None:
    decision = decide(None, Proof(kind=DERIVATIVE, signed=True))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.REEXECUTED, True)


@pytest.mark.parametrize("policy", [None, Policy.REEXECUTE, Policy.INTEGRITY])
@pytest.mark.parametrize("kind", [ROOT, DERIVATIVE])
def test_unsigned_dataset_is_refused_unless_the_user_names_it(policy: Policy | None, kind: DatasetKind) -> None:
    decision = decide(policy, Proof(kind=kind, signed=False))

    assert not decision.accepted
    assert "--policy unsigned" in decision.mend


def test_unsigned_root_under_the_unsigned_policy_is_shown_as_unsigned() -> None:
    decision = decide(Policy.UNSIGNED, Proof(kind=ROOT, signed=False))

    assert (decision.accepted, decision.trust) == (True, Trust.UNSIGNED)


def test_unsigned_derivative_that_can_be_reexecuted_is_reexecuted_and_stays_unsigned() -> None:
    decision = decide(Policy.UNSIGNED, Proof(kind=DERIVATIVE, signed=False))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.UNSIGNED, True)


@pytest.mark.parametrize("lacking", ["engine_available", "inputs_accepted"])
def test_derivative_that_cannot_be_reexecuted_is_refused_with_what_is_missing(lacking: str) -> None:
    proof = Proof(kind=DERIVATIVE, signed=True, missing="the engine 'flink'", **{lacking: False})

    decision = decide(None, proof)

    assert not decision.accepted
    assert "the engine 'flink'" in decision.reason


@pytest.mark.parametrize("lacking", ["engine_available", "inputs_accepted"])
def test_derivative_that_cannot_be_reexecuted_is_taken_as_signed_only_under_integrity(lacking: str) -> None:
    decision = decide(Policy.INTEGRITY, Proof(kind=DERIVATIVE, signed=True, **{lacking: False}))

    assert (decision.accepted, decision.trust, decision.reexecute) == (True, Trust.SIGNED, False)


def test_no_policy_ever_calls_unexecuted_data_reexecuted() -> None:
    for policy in (None, *Policy):
        for signed in (True, False):
            for possible in (True, False):
                decision = decide(policy, Proof(kind=DERIVATIVE, signed=signed, engine_available=possible))
                assert decision.reexecute or decision.trust is not Trust.REEXECUTED
                assert signed or decision.trust in {None, Trust.UNSIGNED}


def test_weakest_of_several_grounds_is_shown() -> None:
    assert weakest([Trust.REEXECUTED, Trust.UNSIGNED, Trust.SIGNED]) is Trust.UNSIGNED
    assert weakest([Trust.OWN, Trust.REEXECUTED]) is Trust.REEXECUTED
