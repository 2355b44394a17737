"""Saying under this node's name what a re-execution found."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from odf_engines.engine import Engine
from odf_node.derive.step_records import identity_of
from odf_node.ports.keys import KeyStore, PrivateKey
from odf_node.records.evidence import HeldAttestation
from odf_protocol.acceptance_statements import AcceptanceStatement, sign_acceptance
from odf_protocol.attestations import Attestation as ReexecutionAttestation
from odf_protocol.attestations import AttestedStep, sign_attestation
from odf_protocol.block import Block
from odf_protocol.did import DatasetId
from odf_protocol.divergence import Divergence
from odf_protocol.errors import OdfError
from odf_protocol.events import ExecuteTransform
from odf_protocol.head import Head
from odf_protocol.in_toto import BlockRef
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Decision, Policy
from odf_protocol.statements import decode_statement
from odf_protocol.timestamp import Timestamp
from odf_protocol.verification_statements import VerificationStatement

MAX_STEPS_IN_ATTESTATION = 4096
"""Source: ATTEST-5 bounds an attestation; more steps make more attestations."""


@dataclass(frozen=True, slots=True)
class Attester:
    """Makes attestations of this node; keeping them is the commit's part."""

    keys: KeyStore

    def attest_acceptance(
        self,
        dataset_id: DatasetId,
        first: Head,
        last: Head,
        *,
        policy: Policy | None,
        decision: Decision,
        replayed_steps: int,
        now: Timestamp,
    ) -> HeldAttestation:
        """State that the blocks from ``first`` to ``last`` were accepted, and on what grounds."""
        assert decision.trust is not None
        key = self.keys.get_or_create_node_key()
        raw = sign_acceptance(
            key.seed,
            dataset_id=dataset_id,
            first=BlockRef(first.sequence_number, first.hash),
            last=BlockRef(last.sequence_number, last.hash),
            policy=policy,
            trust=decision.trust,
            replayed_steps=replayed_steps,
            grounds=decision.reason,
            partial=decision.partial,
            time=now,
        )
        return HeldAttestation.of(decode_statement(raw), now)

    def attest_success(
        self, steps: Iterable[Block], dataset_id: DatasetId, engine: Engine, *, now: Timestamp
    ) -> list[HeldAttestation]:
        """State that every one of these steps was reproduced; several statements where there are very many."""
        key = self.keys.get_or_create_node_key()
        left = iter(steps)
        statements = []
        while part := list(islice(left, MAX_STEPS_IN_ATTESTATION)):
            raw = _sign(key, part, dataset_id, engine, tuple(_agreeing(block) for block in part), now)
            statements.append(HeldAttestation.of(decode_statement(raw), now))
        return statements

    def sign_divergence(
        self,
        block: Block,
        dataset_id: DatasetId,
        engine: Engine,
        divergence: Divergence,
        *,
        reexecuted: Multihash | None,
        now: Timestamp,
    ) -> bytes | None:
        """Sign that the step of ``block`` was not reproduced; the caller keeps it as evidence.

        Returns:
            The statement, or None while this node has no key: a rejection must not make one (ACCEPT-6).
        """
        key = self.keys.find_node_key()
        if key is None:
            return None
        step = AttestedStep(
            block=BlockRef(block.sequence_number, block.hash),
            agrees=False,
            logical_hash=reexecuted,
            difference=divergence.kind,
        )
        return _sign(key, [block], dataset_id, engine, (step,), now)


def describe_attestation(raw: bytes) -> str:
    """Say in words what a kept statement states about its blocks; its signature is checked again."""
    try:
        stated = decode_statement(raw)
    except OdfError as error:
        return f"in a form that cannot be believed: {error}"
    match stated:
        case AcceptanceStatement():
            return f"accepted as {stated.trust.in_words(stated.partial)}: {stated.grounds}"
        case VerificationStatement(problem=problem) if problem is not None:
            return f"NOT VALID: {problem.detail}"
        case VerificationStatement(checked=checked):
            steps = f", {checked.steps} of {checked.steps_in_range} steps re-executed" if checked.steps_in_range else ""
            part = f" (partial: {stated.partial})" if stated.partial else ""
            return f"valid: {checked.rows:,} rows of {checked.slices} of {checked.slices_in_range} slices{steps}{part}"
        case ReexecutionAttestation():
            agree = sum(step.agrees for step in stated.steps)
            engine = f"{stated.engine.name} {stated.engine.version}"
            return f"re-executed with {engine}: {agree} of {len(stated.steps)} steps agree"


def _agreeing(block: Block) -> AttestedStep:
    event = block.event
    assert isinstance(event, ExecuteTransform)
    return AttestedStep(
        block=BlockRef(block.sequence_number, block.hash),
        agrees=True,
        logical_hash=event.new_data.logical_hash if event.new_data else None,
    )


def _sign(
    key: PrivateKey,
    blocks: list[Block],
    dataset_id: DatasetId,
    engine: Engine,
    steps: tuple[AttestedStep, ...],
    now: Timestamp,
) -> bytes:
    return sign_attestation(
        key.seed,
        dataset_id=dataset_id,
        first=BlockRef(blocks[0].sequence_number, blocks[0].hash),
        last=BlockRef(blocks[-1].sequence_number, blocks[-1].hash),
        engine=identity_of(engine),
        steps=steps,
        time=now,
    )
