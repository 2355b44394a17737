"""Statements of whatever kind that travel in DSSE envelopes, and what they say about single blocks.

Source: clauses ATTEST-1 to ATTEST-24 in ``spec/extensions/attestations.md``; POLICY-6 and POLICY-7 in
``spec/extensions/policies.md``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from odf_protocol.acceptance_statements import PREDICATE_TYPE as ACCEPTANCE
from odf_protocol.acceptance_statements import AcceptanceStatement, decode_acceptance
from odf_protocol.attestations import PREDICATE_TYPE as STEP
from odf_protocol.attestations import Attestation, Verdict, decode_attestation
from odf_protocol.block import Block
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.dsse import decode_envelope
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import AddData, ExecuteTransform
from odf_protocol.in_toto import PAYLOAD_TYPE
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Witness
from odf_protocol.verification_statements import PREDICATE_TYPE as VERIFICATION
from odf_protocol.verification_statements import VerificationStatement, decode_verification

Statement = Attestation | AcceptanceStatement | VerificationStatement


@dataclass(frozen=True, slots=True)
class RangeCount:
    """How many blocks of a range add rows, and how many record a step."""

    slices: int
    steps: int


class KnownChain(Protocol):
    """The chain that statements are about, as it is known here: what statements say is compared with it."""

    def find_hash(self, sequence_number: int) -> Multihash | None:
        """Return the hash of a block, None where there is no such block."""
        ...

    def count(self, first: int, last: int) -> RangeCount:
        """Count in a range of blocks that are known."""
        ...


def decode_statement(raw: bytes) -> Statement:
    """Verify and read a statement of one of the three kinds.

    Raises:
        MalformedError: Not a statement.
        UnsupportedError: Of a kind that is not known here.
        RejectedError: A signature is not good, or the statement contradicts itself.
    """
    payload = decode_envelope(raw, payload_type=PAYLOAD_TYPE).payload
    # The payload is canonical JSON, so each text has one spelling in it; the kind's own reader then judges everything.
    for predicate, decode in ((STEP, decode_attestation), (VERIFICATION, decode_verification)):
        if f'"predicateType":"{predicate}"'.encode() in payload:
            return decode(raw)
    if f'"predicateType":"{ACCEPTANCE}"'.encode() in payload:
        return decode_acceptance(raw)
    raise UnsupportedError("kind of statement", supported="replay, verification, acceptance")


def list_witnesses(
    dataset_id: DatasetId,
    blocks: Iterable[Block],
    chain: KnownChain,
    statements: Iterable[Statement],
) -> tuple[Witness, ...]:
    """Find out who attests which of the blocks that bring data.

    A statement counts if both ends of its range are blocks of this chain. It vouches for blocks of the range if it left
    nothing out: every slice and step that the chain has there was read and re-executed. An acceptance statement vouches
    for nothing: its node may have rested on others, and one word must not count twice (POLICY-7).

    Args:
        dataset_id: Whose blocks.
        blocks: The new blocks that bring data, checked; others among them are passed over.
        chain: All of it that is known, the new blocks and those before.
        statements: Verified; about whatever.
    """
    vouchers: dict[int, set[DidKey]] = {}
    deniers: dict[int, set[DidKey]] = {}
    data_blocks = {b.sequence_number: b for b in blocks if isinstance(b.event, AddData | ExecuteTransform)}
    for stated in statements:
        if stated.dataset_id != dataset_id or isinstance(stated, AcceptanceStatement):
            continue
        is_in_chain = _is_in_chain(stated, chain)
        counted = vouchers if is_in_chain and _is_whole(stated, chain) else {}
        if isinstance(stated, Attestation):
            # What contradicts a step is heard whatever else the statement is about.
            _count_steps(stated, data_blocks, counted, deniers)
        elif is_in_chain:
            _count_range(stated, data_blocks, counted, deniers)
    return tuple(
        Witness(number, frozenset(vouchers.get(number, ())), frozenset(deniers.get(number, ())))
        for number in sorted(data_blocks)
    )


def _is_in_chain(stated: Attestation | VerificationStatement, chain: KnownChain) -> bool:
    return all(chain.find_hash(end.sequence_number) == end.hash for end in (stated.first, stated.last))


def _is_whole(stated: Attestation | VerificationStatement, chain: KnownChain) -> bool:
    """Compare what a statement says it looked at with what the chain has in its range (ATTEST-25)."""
    first, last = stated.first.sequence_number, stated.last.sequence_number
    there = chain.count(first, last)
    if isinstance(stated, Attestation):
        return len(stated.steps) == there.steps
    looked_at = RangeCount(stated.checked.slices, stated.checked.steps)
    return stated.checked.is_complete and looked_at == there and stated.checked.blocks == last - first + 1


def _count_steps(
    stated: Attestation, blocks: Mapping[int, Block], vouchers: dict[int, set[DidKey]], deniers: dict[int, set[DidKey]]
) -> None:
    for step in stated.steps:
        block = blocks.get(step.block.sequence_number)
        if block is None or block.hash != step.block.hash:
            continue
        event = block.event
        assert isinstance(event, AddData | ExecuteTransform)
        logical_hash = event.new_data.logical_hash if event.new_data else None
        agrees = step.agrees and step.logical_hash == logical_hash
        (vouchers if agrees else deniers).setdefault(block.sequence_number, set()).add(stated.node)


def _count_range(
    stated: VerificationStatement,
    blocks: Mapping[int, Block],
    vouchers: dict[int, set[DidKey]],
    deniers: dict[int, set[DidKey]],
) -> None:
    for number in blocks:
        if not stated.first.sequence_number <= number <= stated.last.sequence_number:
            continue
        if stated.verdict is Verdict.DIVERGENCE:
            at = stated.problem.sequence_number if stated.problem else None
            if at is None or at == number:
                deniers.setdefault(number, set()).add(stated.node)
        else:
            vouchers.setdefault(number, set()).add(stated.node)
