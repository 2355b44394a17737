"""What proof a dataset needs before its new blocks are accepted, and what an acceptance rests on.

A policy never switches a check off: chain rules and hashes hold always. It says which *kind* of proof is enough, and
the decision carries the reason, so that whoever looks at a dataset later sees what it was accepted on.

Source: clauses ACCEPT-1 to ACCEPT-6 in ``spec/extensions/acceptance.md`` and POLICY-1 to POLICY-9 in
``spec/extensions/policies.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from odf_protocol.did import DidKey
from odf_protocol.enums import DatasetKind


class Policy(StrEnum):
    """What a user asks for; the order is from most to least proof."""

    REEXECUTE = "reexecute"
    ATTESTED = "attested"
    INTEGRITY = "integrity"
    UNSIGNED = "unsigned"


class Trust(StrEnum):
    """What a dataset's data rests on, as shown wherever the dataset appears."""

    OWN = "own"
    REEXECUTED = "re-executed"
    ATTESTED = "attested"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    METADATA = "metadata-only"
    """The chain and who signed it were checked; files, rows and steps were not looked at (PART-2)."""

    @property
    def rank(self) -> int:
        """Bigger is stronger."""
        order = (Trust.METADATA, Trust.UNSIGNED, Trust.SIGNED, Trust.ATTESTED, Trust.REEXECUTED, Trust.OWN)
        return order.index(self)

    def in_words(self, partial: str) -> str:
        """Write it as it is shown of data that are ``partial`` in some way: empty for those that are not (PLAN-10)."""
        return f"{self.value} (partial: {partial})" if partial and self in _ABOUT_STEPS else self.value


_ABOUT_STEPS: Final = (Trust.REEXECUTED, Trust.ATTESTED)
"""What says that rows follow from a declared query."""


@dataclass(frozen=True, slots=True, order=True)
class Auditor:
    """A node whose attestations count, and what its user calls it."""

    name: str
    key: DidKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptRule:
    """One rule of the user's (POLICY-3); ``name`` is how messages and records call it.

    ``policy`` None is the default of ACCEPT-1. ``auditors`` and ``threshold`` say whose attestations count, and how
    many are needed. ``engines`` are names and digests of those whose re-execution counts, empty for all. Without
    ``first_contact``, a dataset that is not held yet is taken only if its identity was named. With ``proves_order``,
    re-execution has to give the rows in their order, too (POLICY-11).
    """

    name: str
    policy: Policy | None = None
    auditors: tuple[Auditor, ...] = ()
    threshold: int = 0
    engines: tuple[str, ...] = ()
    first_contact: bool = True
    proves_order: bool = False

    @classmethod
    def of(cls, policy: Policy | None) -> Self:
        """Give the rule of a user who named a policy, or none, for one command."""
        return cls(name=DEFAULT_RULE if policy is None else f"--policy {policy.value}", policy=policy)


DEFAULT_RULE: Final = "the built-in default"


@dataclass(frozen=True, slots=True)
class Witness:
    """A new block that brings data, and which nodes attest that it is right, or that it is wrong."""

    sequence_number: int
    vouchers: frozenset[DidKey] = frozenset()
    deniers: frozenset[DidKey] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was established about new blocks before the policy is asked.

    ``engine_available`` and ``inputs_accepted`` matter for derivatives only; ``missing`` says what was not, in words.
    ``is_new``: the dataset is not held yet; ``identity_named``: the user said which identity it must have.
    ``witnesses``: one for each new block with data. ``lapses`` says which rows of inputs the new steps leave out or
    take twice (PLAN-9), ``is_late`` that the query in force made none of the steps (PLAN-11), ``partial`` all that
    makes the dataset less than its declared query over the whole input; ``weakness`` is what is weak about its rows, in
    words (ROWS-13). ``engines`` are those that the steps name.
    """

    kind: DatasetKind
    signed: bool
    engine_available: bool = True
    inputs_accepted: bool = True
    missing: str = ""
    is_new: bool = False
    identity_named: bool = False
    witnesses: tuple[Witness, ...] = ()
    lapses: str = ""
    is_late: bool = False
    partial: str = ""
    weakness: str = ""
    engines: tuple["EngineHere", ...] = ()


@dataclass(frozen=True, slots=True)
class EngineHere:
    """An engine that the steps name: its name in small letters, and its digest as text, empty where that is unknown."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do: accept on ``trust`` (after re-execution where ``reexecute``), or reject with ``reason``.

    ``rule`` is the clause that a rejection is recorded under; ``rests_on`` the auditors that an acceptance counted;
    ``partial`` is that of the proof.
    """

    accepted: bool
    trust: Trust | None
    reexecute: bool
    reason: str
    fix: str = ""
    rule: str = ""
    rests_on: tuple[Auditor, ...] = ()
    partial: str = ""

    @property
    def ground(self) -> str | None:
        """What the data then rest on, as it is shown; None where they are rejected."""
        return None if self.trust is None else self.trust.in_words(self.partial)


def default_policy(kind: DatasetKind) -> Policy:
    """Give the policy where the user names none: re-execute derivatives, signatures and hashes for roots (ACCEPT-1)."""
    return Policy.REEXECUTE if kind is DatasetKind.DERIVATIVE else Policy.INTEGRITY


def decide(asked: AcceptRule | Policy | None, proof: Proof) -> Decision:
    """Say what the new blocks of a dataset can be accepted on, and why.

    Args:
        asked: The rule in force, or the policy that the user named, None for the default.
        proof: What has been established; chain rules, hashes and rows are known to hold.
    """
    decision = _decide(asked if isinstance(asked, AcceptRule) else AcceptRule.of(asked), proof)
    if not decision.accepted or not proof.weakness:
        return decision
    return replace(decision, reason=f"{decision.reason}; {proof.weakness}")


def _decide(rule: AcceptRule, proof: Proof) -> Decision:
    effective = rule.policy or default_policy(proof.kind)
    if (rejection := _find_obstacle(rule, proof)) is not None:
        return rejection
    if effective is Policy.ATTESTED:
        return _decide_on_attestations(rule, proof)
    first = ", first contact" if proof.is_new and not proof.identity_named else ""
    if proof.kind is DatasetKind.ROOT:
        trust = Trust.SIGNED if proof.signed else Trust.UNSIGNED
        reason = f"root data: chain, rows and hashes hold, {_signed_text(proof.signed)}{first}"
        return Decision(True, trust, False, reason)
    uncounted = _describe_uncounted(rule, proof)
    possible = proof.engine_available and proof.inputs_accepted and not uncounted
    if possible and effective is Policy.REEXECUTE and (rejection := _find_part_left_out(proof)) is not None:
        return rejection
    if possible and effective is not Policy.INTEGRITY:
        # An unsigned derivative that re-executes is still re-executed (ACCEPT-4): no possible proof is left out.
        trust = Trust.REEXECUTED if proof.signed else Trust.UNSIGNED
        part = f" (partial: {proof.partial})" if proof.partial else ""
        reason = f"re-executed here from accepted inputs{part}, {_signed_text(proof.signed)}{first}"
        return Decision(True, trust, True, reason, partial=proof.partial)
    if effective is Policy.REEXECUTE:
        return _reject(
            f"its transforms cannot be re-executed here: {'; '.join(filter(None, (proof.missing, uncounted)))}",
            f"{'' if proof.inputs_accepted else 'pull the inputs first (--recursive does), or '}"
            "take it knowingly with --policy integrity; it is then shown as not re-executed",
            "POLICY-10 engine-counts" if uncounted else "ACCEPT-2 steps-can-be-re-executed",
        )
    trust = Trust.SIGNED if proof.signed else Trust.UNSIGNED
    return Decision(True, trust, False, f"not re-executed; chain and hashes hold, {_signed_text(proof.signed)}{first}")


def decide_on_order(decision: Decision, rule: AcceptRule, found: str) -> Decision:
    """Say what a decision becomes where re-execution gave the rows, and not their order (PLAN-19).

    Args:
        decision: To accept, after re-execution.
        rule: In force.
        found: In words, of which steps the order is not proved; empty: the order is proved of all.
    """
    if not found:
        return decision
    if rule.proves_order:
        return _reject(
            f"{rule.name} asks for the order of rows, and {found}: the declared query fixes none",
            "ask its publisher for a query that fixes the order, or leave out rowOrder: proved",
            "POLICY-11 order-is-proved",
        )
    return replace(decision, reason=f"{decision.reason}; {found}")


def decide_on_metadata(asked: AcceptRule | Policy | None, proof: Proof, *, has_files: bool = False) -> Decision:
    """Say whether new blocks can be taken without their files (PART-1, PART-2), or without a look at rows (PART-12).

    What a rule asks for beside files and re-execution is asked for here too. Nothing is claimed about data.

    Args:
        asked: As ``decide``.
        proof: What has been established; only the chain rules are known to hold.
        has_files: The hashes of the files are, too.
    """
    rule = asked if isinstance(asked, AcceptRule) else AcceptRule.of(asked)
    if (rejection := _find_obstacle(rule, proof)) is not None:
        return rejection
    found, left = ("chain and files hold", ["rows"]) if has_files else ("the chain holds", ["files", "rows"])
    if proof.kind is DatasetKind.DERIVATIVE:
        left.append("steps")
    *others, last = left
    unseen = f"{', '.join(others)} and {last}" if others else last
    reason = f"{found}, {_signed_text(proof.signed)}; {unseen} were not looked at"
    if rule.policy is Policy.ATTESTED:
        attested = _decide_on_attestations(rule, proof)
        if not attested.accepted:
            return attested
        return Decision(True, Trust.METADATA, False, f"{reason}; {attested.reason}", rests_on=attested.rests_on)
    first = ", first contact" if proof.is_new and not proof.identity_named else ""
    return Decision(True, Trust.METADATA, False, f"{reason}{first}")


def _describe_uncounted(rule: AcceptRule, proof: Proof) -> str:
    """Say which engines the rule does not count, empty where it counts all (POLICY-10)."""
    if not rule.engines:
        return ""
    others = [each for each in proof.engines if each.name not in rule.engines and each.digest not in rule.engines]
    named = ", ".join(f"{each.name!r}{f' (digest {each.digest})' if each.digest else ''}" for each in others)
    return f"{rule.name} does not count engine {named}" if others else ""


def _find_obstacle(rule: AcceptRule, proof: Proof) -> Decision | None:
    """Reject what no proof about data could fix: an unwanted first contact, blocks that nobody signed."""
    if proof.is_new and not rule.first_contact and not proof.identity_named:
        return _reject(
            f"{rule.name} does not take datasets on first contact, and this identity was never named",
            "name it with --identity, or in a rule of the policies",
            "POLICY-5 first-contact-is-allowed",
        )
    if not proof.signed and (rule.policy or default_policy(proof.kind)) is not Policy.UNSIGNED:
        return _reject(
            "the peer has no signatures for this dataset, so its blocks are not attested",
            "take it knowingly with --policy unsigned; it is then shown as unsigned",
            "ACCEPT-3 peer-has-signatures",
        )
    return None


def _find_part_left_out(proof: Proof) -> Decision | None:
    """Reject as not re-executed what is not the declared query over the whole input (PLAN-9, PLAN-11)."""
    fix = "or take it knowingly with --policy integrity; it is then shown as not re-executed"
    if proof.lapses:
        return _reject(
            f"its steps do not take every input row once: {proof.lapses}",
            f"ask its publisher to make it anew, {fix}",
            "PLAN-9 steps-take-inputs-up-where-they-ended",
        )
    if proof.is_late:
        return _reject(
            "its query was declared after all of its steps, so that no row is known to be of it",
            f"pull again when the query has made a step, {fix}",
            "PLAN-11 query-is-not-late",
        )
    return None


def _decide_on_attestations(rule: AcceptRule, proof: Proof) -> Decision:
    """Count auditors block by block (POLICY-6): each new block with data needs ``threshold`` of them, and no denial."""
    by_key = {auditor.key: auditor for auditor in rule.auditors}
    counted: set[Auditor] = set()
    for witness in proof.witnesses:
        if deniers := sorted(by_key[key].name for key in witness.deniers & by_key.keys()):
            return _reject(
                f"block {witness.sequence_number} is contradicted by {', '.join(deniers)}, an auditor of {rule.name}",
                "look at its attestation, or re-execute here with --policy reexecute",
                "POLICY-6 no-named-auditor-contradicts",
            )
    for witness in proof.witnesses:
        vouchers = sorted(by_key[key] for key in witness.vouchers & by_key.keys())
        if len(vouchers) < rule.threshold:
            by = ", ".join(auditor.name for auditor in vouchers) or "none of them"
            others = ", ".join(sorted(a.name for a in rule.auditors if a not in vouchers))
            return _reject(
                f"{rule.name} asks for {rule.threshold} of {len(rule.auditors)} auditors; "
                f"block {witness.sequence_number} is attested by {by}, not by {others}",
                "pull again when they have verified it, or re-execute here with --policy reexecute",
                "POLICY-6 enough-auditors-attest",
            )
        counted.update(vouchers)
    names = sorted(counted)
    stated = f"{len(proof.witnesses)} blocks with data attested by {rule.threshold} of {len(rule.auditors)} auditors"
    grounds = f"{stated} ({', '.join(a.name for a in names)})" if names else "no new block brings data"
    part = f" (partial: {proof.partial})" if proof.partial else ""
    reason = f"{grounds}{part}, {_signed_text(proof.signed)}"
    return Decision(True, Trust.ATTESTED, False, reason, rests_on=tuple(names), partial=proof.partial)


def _reject(reason: str, fix: str, rule: str) -> Decision:
    return Decision(False, None, False, reason, fix, rule)


def weakest(trusts: Iterable[Trust]) -> Trust:
    """Give the weakest of several trusts: a chain of acceptances is as strong as that (ACCEPT-5)."""
    return min(trusts, key=lambda trust: trust.rank)


def _signed_text(signed: bool) -> str:
    return "signed by the dataset's key" if signed else "unsigned"
