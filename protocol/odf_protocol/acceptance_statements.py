"""Acceptance statements: "I checked these blocks and accepted them, on these grounds", signed by a node.

A replay attestation says what a re-execution found; an acceptance statement says on what a node rested when it took
blocks of somebody else, re-executed or not. Both are in-toto statements about the last block, in DSSE envelopes.

Source: clauses ATTEST-10 and ATTEST-11 in ``spec/extensions/attestations.md``; in-toto Statement v1.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from odf_protocol.block_refs import BlockDocument, BlockRef, document_of, parse_block_ref
from odf_protocol.canonical_json import Count, Document, Text, parse_exact
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.in_toto import (
    STATEMENT_TYPE,
    InTotoStatement,
    read_statement,
    require_signed_by,
    require_subject,
    sign_statement,
    subject_of,
)
from odf_protocol.policy import Policy, Trust
from odf_protocol.signatures import public_key_of
from odf_protocol.timestamp import Timestamp

__all__ = ["PREDICATE_TYPE", "AcceptanceStatement", "decode_acceptance", "sign_acceptance"]

PREDICATE_TYPE: Final = "https://w3id.org/odf-node/acceptance/v1"
"""Ours; an identifier, nothing is fetched from it."""
MAX_STATEMENT_BYTES: Final = 16 * 1024
"""All fields at their longest take about 3 kB."""
DEFAULT_POLICY: Final = "default"
"""What ``policy`` says where the user named none."""


Word = TypeVar("Word", Policy, Trust)


class _Predicate(Document, frozen=True):
    node: Text
    dataset: Text
    first_block: BlockDocument
    last_block: BlockDocument
    policy: Text
    trust: Text
    replayed_steps: Count
    grounds: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    time: Text
    partial: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class _Statement(InTotoStatement, frozen=True):
    predicate_type: Literal["https://w3id.org/odf-node/acceptance/v1"]
    predicate: _Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceStatement:
    """What a node accepted; made by ``decode_acceptance`` only, so the node has signed it.

    Attributes:
        node: Who accepted.
        dataset_id: Whose blocks.
        first: First of the new blocks.
        last: Last of the new blocks.
        policy: What the node's user named, None for the default.
        trust: What the new blocks rest on.
        replayed_steps: How many steps were re-executed.
        grounds: The decision in words.
        time: When, by the node's clock.
        partial: What makes the dataset less than its declared query over the whole input; empty where nothing does.
        raw: The envelope as received.
    """

    node: DidKey
    dataset_id: DatasetId
    first: BlockRef
    last: BlockRef
    policy: Policy | None
    trust: Trust
    replayed_steps: int
    grounds: str
    time: Timestamp
    partial: str
    raw: bytes = field(repr=False)


def sign_acceptance(
    private_key: bytes,
    *,
    dataset_id: DatasetId,
    first: BlockRef,
    last: BlockRef,
    policy: Policy | None,
    trust: Trust,
    replayed_steps: int,
    grounds: str,
    time: Timestamp,
    partial: str = "",
) -> bytes:
    """Write down and sign on what blocks were accepted; the arguments are the fields of ``AcceptanceStatement``.

    Returns:
        The envelope as stored and sent.

    Raises:
        ValueError: Something that no statement can say.
    """
    predicate = _Predicate(
        node=str(DidKey(public_key_of(private_key))),
        dataset=str(dataset_id),
        first_block=document_of(first),
        last_block=document_of(last),
        policy=DEFAULT_POLICY if policy is None else policy.value,
        trust=trust.value,
        replayed_steps=replayed_steps,
        grounds=grounds[:1000],
        time=str(time),
        partial=partial[:1000],
    )
    statement = _Statement(
        statement_type=STATEMENT_TYPE,
        subject=subject_of(dataset_id, last),
        predicate_type=PREDICATE_TYPE,
        predicate=predicate,
    )
    return sign_statement(private_key, statement, decode_acceptance)


def decode_acceptance(raw: bytes) -> AcceptanceStatement:
    """Verify and read an acceptance statement.

    Raises:
        MalformedError: Not an acceptance statement.
        RejectedError: A signature is not good, or the statement contradicts itself.
    """
    document, signers = read_statement(raw, _Statement, what="acceptance", max_bytes=MAX_STATEMENT_BYTES)
    said = document.predicate
    statement = AcceptanceStatement(
        node=parse_exact(DidKey, said.node, "acceptance node"),
        dataset_id=parse_exact(DatasetId, said.dataset, "acceptance dataset"),
        first=parse_block_ref(said.first_block.sequence_number, said.first_block.hash, clause="ATTEST-10"),
        last=parse_block_ref(said.last_block.sequence_number, said.last_block.hash, clause="ATTEST-10"),
        policy=None if said.policy == DEFAULT_POLICY else _member(Policy, said.policy),
        trust=_member(Trust, said.trust),
        replayed_steps=said.replayed_steps,
        grounds=said.grounds,
        time=parse_exact(Timestamp, said.time, "acceptance time"),
        partial=said.partial,
        raw=bytes(raw),
    )
    require_subject(document, statement.dataset_id, statement.last)
    require_signed_by(statement.node, signers)
    if statement.first.sequence_number > statement.last.sequence_number:
        raise RejectedError(
            "ATTEST-10 range-is-not-empty",
            expected=f"at most {statement.last.sequence_number}",
            found=statement.first.sequence_number,
        )
    return statement


def _member(kind: type[Word], text: str) -> Word:
    try:
        return kind(text)
    except ValueError as error:
        raise MalformedError("acceptance", expected=f"a word of {kind.__name__}", found=repr(text)) from error
