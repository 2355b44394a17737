"""Acceptance statements: "I checked these blocks and accepted them, on these grounds", signed by a node.

A replay attestation says what a re-execution found; an acceptance statement says on what a node rested when it took
blocks of somebody else, re-executed or not. Both are in-toto statements about the last block, in DSSE envelopes.

Source: clauses ATTEST-10 and ATTEST-11 in ``spec/extensions/attestations.md``; in-toto Statement v1.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from odf_protocol.canonical_json import Count, Text
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.in_toto import (
    BlockRef,
    InTotoStatement,
    NodeStatement,
    StatementPredicate,
    begin_predicate,
    read_statement,
    sign_statement,
)
from odf_protocol.policy import Policy, Trust
from odf_protocol.timestamp import Timestamp

PREDICATE_TYPE: Final = "https://w3id.org/odf-node/acceptance/v1"
"""Ours; an identifier, nothing is fetched from it."""
MAX_STATEMENT_BYTES: Final = 16 * 1024
"""All fields at their longest take about 3 kB."""
DEFAULT_POLICY: Final = "default"
"""What ``policy`` says where the user named none."""


Word = TypeVar("Word", Policy, Trust)


class _Predicate(StatementPredicate, frozen=True, kw_only=True):
    policy: Text
    trust: Text
    replayed_steps: Count
    grounds: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    partial: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class _Statement(InTotoStatement, frozen=True, kw_only=True):
    predicate_type: Literal["https://w3id.org/odf-node/acceptance/v1"]
    predicate: _Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceStatement(NodeStatement):
    """What a node accepted: blocks that were new to it.

    Attributes:
        policy: What the node's user named, None for the default.
        trust: What the new blocks rest on.
        replayed_steps: How many steps were re-executed.
        grounds: The decision in words.
        partial: What makes the dataset less than its declared query over the whole input; empty where nothing does.
    """

    policy: Policy | None
    trust: Trust
    replayed_steps: int
    grounds: str
    partial: str


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
        **begin_predicate(private_key, dataset_id, first, last, time),
        policy=DEFAULT_POLICY if policy is None else policy.value,
        trust=trust.value,
        replayed_steps=replayed_steps,
        grounds=grounds[:1000],
        partial=partial[:1000],
    )
    return sign_statement(private_key, _Statement, PREDICATE_TYPE, predicate, decode_acceptance)


def decode_acceptance(raw: bytes) -> AcceptanceStatement:
    """Verify and read an acceptance statement.

    Raises:
        MalformedError: Not an acceptance statement.
        RejectedError: A signature is not good, or the statement contradicts itself.
    """
    document, reported = read_statement(
        raw, _Statement, what="acceptance", max_bytes=MAX_STATEMENT_BYTES, clause="ATTEST-10"
    )
    stated = document.predicate
    statement = AcceptanceStatement(
        **reported,
        policy=None if stated.policy == DEFAULT_POLICY else _member(Policy, stated.policy),
        trust=_member(Trust, stated.trust),
        replayed_steps=stated.replayed_steps,
        grounds=stated.grounds,
        partial=stated.partial,
    )
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
