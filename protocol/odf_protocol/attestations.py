"""Attestations: "I re-executed these blocks with this engine and got these rows", signed by a node, for everybody.

An attestation is an in-toto statement about the last of the blocks, whose hash fixes all blocks before it, in a DSSE
envelope. It says what was found, good or bad; what it is worth is decided by the policy of whoever reads it.

Source: clauses ATTEST-1 to ATTEST-8 in ``spec/extensions/attestations.md``; in-toto Statement v1.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from odf_protocol.canonical_json import Count, Document, ShortText, Text, parse_exact
from odf_protocol.did import DatasetId
from odf_protocol.dsse import MAX_ENVELOPE_BYTES
from odf_protocol.errors import RejectedError
from odf_protocol.in_toto import (
    BlockRef,
    InTotoStatement,
    NodeStatement,
    StatementPredicate,
    begin_predicate,
    parse_block_ref,
    read_statement,
    sign_statement,
)
from odf_protocol.multihash import Multihash
from odf_protocol.step_record import EngineDocument, EngineIdentity
from odf_protocol.timestamp import Timestamp

PREDICATE_TYPE: Final = "https://w3id.org/odf-node/replay-attestation/v1"
"""Ours; an identifier, nothing is fetched from it."""
_MAX_STEPS: Final = 4096  # guess: fills the largest envelope


class Verdict(StrEnum):
    """What the re-execution of all steps together says."""

    SUCCESS = "success"
    DIVERGENCE = "divergence"


class _Step(Document, frozen=True, kw_only=True):
    sequence_number: Count
    block_hash: Text
    agrees: bool
    logical_hash: Text | None = None
    # The payload's name for the hash of the step record; the form has been signed since its first version.
    step_record: Text | None = msgspec.field(default=None, name="replayRecord")
    difference: ShortText | None = None


class _Predicate(StatementPredicate, frozen=True, kw_only=True):
    engine: EngineDocument
    steps: Annotated[tuple[_Step, ...], msgspec.Meta(min_length=1, max_length=_MAX_STEPS)]
    verdict: Literal["success", "divergence"]


class _Statement(InTotoStatement, frozen=True, kw_only=True):
    predicate_type: Literal["https://w3id.org/odf-node/replay-attestation/v1"]
    predicate: _Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestedStep:
    """What re-executing one block gave.

    Attributes:
        block: The block that records the step.
        agrees: Whether all that the block says about its result was found again.
        logical_hash: Of the rows that were found; None when there were none.
        step_record: Hash of the record that was followed, if there was one.
        difference: Kind of the first difference (``schema``, ``row-count``, ``row-order``, ``cells``, ``watermark``,
            ``presence``, ``checkpoint``); given exactly when the step does not agree.
    """

    block: BlockRef
    agrees: bool
    logical_hash: Multihash | None
    step_record: Multihash | None = None
    difference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation(NodeStatement):
    """What a node found when it re-executed the steps of a range of blocks.

    Attributes:
        engine: What was run.
        steps: One for each step in the range, ascending.
        verdict: SUCCESS exactly when all steps agree.
    """

    engine: EngineIdentity
    steps: tuple[AttestedStep, ...]
    verdict: Verdict


def sign_attestation(
    private_key: bytes,
    *,
    dataset_id: DatasetId,
    first: BlockRef,
    last: BlockRef,
    engine: EngineIdentity,
    steps: tuple[AttestedStep, ...],
    time: Timestamp,
) -> bytes:
    """Write down and sign what a node found; the arguments are the fields of ``Attestation``.

    Args:
        private_key: The node's.
        dataset_id: Whose blocks.
        first: First block of the range.
        last: Last block of the range.
        engine: What was run.
        steps: One for each step in the range, ascending; the verdict follows from them.
        time: Now.

    Returns:
        The envelope as stored and sent.

    Raises:
        ValueError: Something that no attestation can say.
    """
    verdict = Verdict.SUCCESS if all(step.agrees for step in steps) else Verdict.DIVERGENCE
    predicate = _Predicate(
        **begin_predicate(private_key, dataset_id, first, last, time),
        engine=EngineDocument.of(engine),
        steps=tuple(_step_document(step) for step in steps),
        verdict=verdict.value,
    )
    return sign_statement(private_key, _Statement, PREDICATE_TYPE, predicate, decode_attestation)


def decode_attestation(raw: bytes) -> Attestation:
    """Verify and read an attestation.

    Raises:
        MalformedError: Not an attestation.
        UnsupportedError: An identifier with a key of another kind.
        RejectedError: A signature is not good, or the statement contradicts itself.
    """
    statement, reported = read_statement(
        raw, _Statement, what="attestation", max_bytes=MAX_ENVELOPE_BYTES, clause="ATTEST-2"
    )
    stated = statement.predicate
    attestation = Attestation(
        **reported,
        engine=stated.engine.to_identity(),
        steps=tuple(_step(step) for step in stated.steps),
        verdict=Verdict(stated.verdict),
    )
    _check_consistency(attestation)
    return attestation


def _check_consistency(stated: Attestation) -> None:
    numbers = [step.block.sequence_number for step in stated.steps]
    if numbers != sorted(set(numbers)):
        raise RejectedError("ATTEST-5 steps-ascend", expected=sorted(set(numbers)), found=numbers)
    if not stated.first.sequence_number <= numbers[0] <= numbers[-1] <= stated.last.sequence_number:
        expected = f"{stated.first.sequence_number} to {stated.last.sequence_number}"
        raise RejectedError("ATTEST-5 steps-in-range", expected=expected, found=f"{numbers[0]} to {numbers[-1]}")
    for step in stated.steps:
        for end in (stated.first, stated.last):
            if step.block.sequence_number == end.sequence_number and step.block != end:
                raise RejectedError("ATTEST-5 one-block-one-hash", expected=end.hash, found=step.block.hash)
        if step.agrees != (step.difference is None):
            raise RejectedError("ATTEST-6 difference-exactly-where-steps-disagree", found=step.difference)
    agrees = all(step.agrees for step in stated.steps)
    if agrees != (stated.verdict is Verdict.SUCCESS):
        expected = Verdict.SUCCESS if agrees else Verdict.DIVERGENCE
        raise RejectedError("ATTEST-7 verdict-follows-from-steps", expected=expected, found=stated.verdict)


def _step_document(step: AttestedStep) -> _Step:
    return _Step(
        sequence_number=step.block.sequence_number,
        block_hash=str(step.block.hash),
        agrees=step.agrees,
        logical_hash=None if step.logical_hash is None else str(step.logical_hash),
        step_record=None if step.step_record is None else str(step.step_record),
        difference=step.difference,
    )


def _step(stated: _Step) -> AttestedStep:
    return AttestedStep(
        block=parse_block_ref(stated.sequence_number, stated.block_hash, clause="ATTEST-2"),
        agrees=stated.agrees,
        logical_hash=None
        if stated.logical_hash is None
        else parse_exact(Multihash, stated.logical_hash, "logical hash"),
        step_record=None if stated.step_record is None else parse_exact(Multihash, stated.step_record, "step record"),
        difference=stated.difference,
    )
