"""What proof a dataset needs before its new blocks are accepted, and what an acceptance rests on.

A policy never switches a check off: chain rules and hashes hold always. It says which *kind* of proof is enough, and
the decision carries the reason, so that whoever looks at a dataset later sees what it was accepted on.

Source: clauses ACCEPT-1 to ACCEPT-6 in ``spec/extensions/acceptance.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from odf_protocol.events import DatasetKind


class Policy(StrEnum):
    """What a user asks for; the order is from most to least proof."""

    REEXECUTE = "reexecute"
    INTEGRITY = "integrity"
    UNSIGNED = "unsigned"


class Trust(StrEnum):
    """What a dataset's data rests on, as shown wherever the dataset appears."""

    OWN = "own"
    REEXECUTED = "re-executed"
    SIGNED = "signed"
    UNSIGNED = "unsigned"

    @property
    def rank(self) -> int:
        """Bigger is stronger."""
        return (Trust.UNSIGNED, Trust.SIGNED, Trust.REEXECUTED, Trust.OWN).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was established about new blocks before the policy is asked.

    ``engine_available`` and ``inputs_accepted`` matter for derivatives only; ``missing`` says what was not, in words.
    """

    kind: DatasetKind
    signed: bool
    engine_available: bool = True
    inputs_accepted: bool = True
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do: accept on ``trust`` (after re-execution where ``reexecute``), or refuse with ``reason``."""

    accepted: bool
    trust: Trust | None
    reexecute: bool
    reason: str
    mend: str = ""


def default_policy(kind: DatasetKind) -> Policy:
    """Give the policy where the user names none: re-execute derivatives, signatures and hashes for roots (ACCEPT-1)."""
    return Policy.REEXECUTE if kind is DatasetKind.DERIVATIVE else Policy.INTEGRITY


def decide(policy: Policy | None, proof: Proof) -> Decision:
    """Say what the new blocks of a dataset can be accepted on.

    Args:
        policy: What the user named, None for the default.
        proof: What has been established; chain rules, hashes and rows are known to hold.
    """
    effective = policy or default_policy(proof.kind)
    if not proof.signed and effective is not Policy.UNSIGNED:
        return Decision(
            False,
            None,
            False,
            "the peer has no signatures for this dataset, so nobody vouches for its blocks",  # ACCEPT-3
            "take it knowingly with --policy unsigned; it is then shown as unsigned",
        )
    if proof.kind is DatasetKind.ROOT:
        trust = Trust.SIGNED if proof.signed else Trust.UNSIGNED
        return Decision(True, trust, False, f"root data: chain, rows and hashes hold, {_signed_text(proof.signed)}")
    possible = proof.engine_available and proof.inputs_accepted
    if possible and effective is not Policy.INTEGRITY:
        # An unsigned derivative that replays is still replayed (ACCEPT-4): proof that can be had is not left out.
        trust = Trust.REEXECUTED if proof.signed else Trust.UNSIGNED
        return Decision(True, trust, True, f"re-executed here from accepted inputs, {_signed_text(proof.signed)}")
    if effective is Policy.REEXECUTE:
        return Decision(
            False,
            None,
            False,
            f"its transforms cannot be re-executed here: {proof.missing}",  # ACCEPT-2
            "pull the inputs first, or take it knowingly with --policy integrity; it is then shown as not re-executed",
        )
    trust = Trust.SIGNED if proof.signed else Trust.UNSIGNED
    return Decision(True, trust, False, f"not re-executed; chain and hashes hold, {_signed_text(proof.signed)}")


def weakest(trusts: Iterable[Trust]) -> Trust:
    """Give the weakest of several trusts: a chain of acceptances is as strong as that (ACCEPT-5)."""
    return min(trusts, key=lambda trust: trust.rank)


def _signed_text(signed: bool) -> str:
    return "signed by the dataset's key" if signed else "signed by nobody"
