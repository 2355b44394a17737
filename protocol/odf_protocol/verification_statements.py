"""Verification statements: "I checked these blocks, and found this", signed by an auditor, good or bad.

A replay attestation speaks about steps of derivatives. A verification statement speaks about everything that can be
checked of a range of blocks: links, signatures, files, every row of every slice, logical hashes and, for derivatives,
re-execution. So root data can be vouched for too.

Source: clauses ATTEST-20 to ATTEST-24 in ``spec/extensions/attestations.md``; in-toto Statement v1.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec

from odf_protocol.attestations import Verdict
from odf_protocol.canonical_json import Count, Document, Text, parse_exact
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.in_toto import (
    BlockRef,
    InTotoStatement,
    NodeStatement,
    StatementPredicate,
    begin_predicate,
    read_statement,
    sign_statement,
)
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

PREDICATE_TYPE: Final = "https://w3id.org/odf-node/verification/v1"
"""Ours; an identifier, nothing is fetched from it."""
MAX_STATEMENT_BYTES: Final = 16 * 1024
"""All fields at their longest take about 4 kB."""


class Checked(Document, frozen=True, kw_only=True):
    """How much was checked of how much there is; what was sampled has less than there is (ATTEST-22)."""

    blocks: Count
    slices: Count
    slices_in_range: Count
    rows: Count
    steps: Count
    steps_in_range: Count

    @property
    def is_complete(self) -> bool:
        """Every slice was read, and every step re-executed."""
        return self.slices == self.slices_in_range and self.steps == self.steps_in_range


class _Problem(Document, frozen=True, kw_only=True):
    rule: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    detail: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    sequence_number: Count | None = None
    evidence: Text | None = None


class _Predicate(StatementPredicate, frozen=True, kw_only=True):
    checked: Checked
    verdict: Literal["success", "divergence"]
    problem: _Problem | None = None
    partial: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class _Statement(InTotoStatement, frozen=True, kw_only=True):
    predicate_type: Literal["https://w3id.org/odf-node/verification/v1"]
    predicate: _Predicate


@dataclass(frozen=True, slots=True)
class VerificationProblem:
    """The first thing that is wrong: the rule it breaks, in words, where, and the hash of the evidence that is kept."""

    rule: str
    detail: str
    sequence_number: int | None = None
    evidence: Multihash | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationStatement(NodeStatement):
    """What an auditor found in the blocks that were checked.

    Attributes:
        checked: How much was.
        problem: What is wrong; None where nothing is.
        partial: What makes the dataset less than its declared query over the whole input; empty where nothing does.
    """

    checked: Checked
    problem: VerificationProblem | None
    partial: str

    @property
    def verdict(self) -> Verdict:
        """SUCCESS exactly where no problem was found."""
        return Verdict.SUCCESS if self.problem is None else Verdict.DIVERGENCE


def sign_verification(
    private_key: bytes,
    *,
    dataset_id: DatasetId,
    first: BlockRef,
    last: BlockRef,
    checked: Checked,
    problem: VerificationProblem | None,
    time: Timestamp,
    partial: str = "",
) -> bytes:
    """Write down and sign what a verification found; the arguments are the fields of ``VerificationStatement``.

    Returns:
        The envelope as stored and sent.

    Raises:
        ValueError: Something that no statement can say.
    """
    stated = None
    if problem is not None:
        evidence = None if problem.evidence is None else str(problem.evidence)
        stated = _Problem(
            rule=problem.rule[:200],
            detail=problem.detail[:1000],
            sequence_number=problem.sequence_number,
            evidence=evidence,
        )
    predicate = _Predicate(
        **begin_predicate(private_key, dataset_id, first, last, time),
        checked=checked,
        verdict="success" if problem is None else "divergence",
        problem=stated,
        partial=partial[:1000],
    )
    return sign_statement(private_key, _Statement, PREDICATE_TYPE, predicate, decode_verification)


def decode_verification(raw: bytes) -> VerificationStatement:
    """Verify and read a verification statement.

    Raises:
        MalformedError: Not a verification statement.
        RejectedError: A signature is not good, or the statement contradicts itself.
    """
    document, reported = read_statement(
        raw, _Statement, what="verification", max_bytes=MAX_STATEMENT_BYTES, clause="ATTEST-20"
    )
    stated = document.predicate
    statement = VerificationStatement(
        **reported,
        checked=stated.checked,
        problem=None if stated.problem is None else _problem(stated.problem),
        partial=stated.partial,
    )
    if stated.verdict != statement.verdict.value:
        raise RejectedError("ATTEST-23 problem-exactly-where-divergence", found=stated.verdict)
    length = statement.last.sequence_number - statement.first.sequence_number + 1
    checked = statement.checked
    if not (
        0 < checked.blocks <= length
        and checked.slices <= checked.slices_in_range <= length
        and checked.steps <= checked.steps_in_range <= length
        and checked.slices <= checked.rows  # no slice is empty
    ):
        raise RejectedError("ATTEST-22 counts-fit-the-range", expected=f"at most {length}", found=checked)
    return statement


def _problem(stated: _Problem) -> VerificationProblem:
    evidence = None if stated.evidence is None else parse_exact(Multihash, stated.evidence, "evidence")
    return VerificationProblem(stated.rule, stated.detail, stated.sequence_number, evidence)
