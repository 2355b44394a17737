"""Judging a bundle of evidence offline: who signed what, and what is proved, whoever sent it.

Every document of a bundle is checked by itself. What two documents together prove (one key that said two things) is
proved here too, also where the sender did not notice. What is only somebody's word is called that.

Source: clauses JUDGE-1 to JUDGE-6 in ``spec/extensions/evidence.md``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from odf_protocol.acceptance_statements import AcceptanceStatement
from odf_protocol.attestations import Attestation, Verdict
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.equivocation import (
    Claim,
    EquivocationKind,
    EquivocationProof,
    check_equivocation,
    prove_equivocation,
    read_block_statement,
)
from odf_protocol.errors import MalformedError, OdfError, RejectedError
from odf_protocol.heads import decode_signed_head
from odf_protocol.key_events import decode_key_event
from odf_protocol.key_history import KeyHistory
from odf_protocol.key_logs import excuses, fold_kept_events
from odf_protocol.settlements import decode_settlement
from odf_protocol.statements import decode_statement
from odf_protocol.verification_statements import VerificationStatement

MAX_BUNDLE_BYTES: Final = 64 * 1024 * 1024  # guess: some of the largest proofs
_MAX_DOCUMENTS: Final = 1000  # guess; pairs of them are looked at


class DocumentSort(StrEnum):
    """What a document of a bundle is."""

    SIGNED_HEAD = "signed-head"
    BLOCK_STATEMENT = "block-statement"
    KEY_EVENT = "key-event"
    EQUIVOCATION = "equivocation"
    SETTLEMENT = "settlement"
    STATEMENT = "statement"


class Weight(StrEnum):
    """How much a finding is worth to somebody who believes nobody."""

    PROVED = "proved"
    """Follows from signatures alone."""
    CLAIMED = "claimed"
    """Signed by the one who says it: it is proved that it was said, not that it is so."""
    WORTHLESS = "worthless"
    """Not what it is called: no signature holds for it, or it contradicts itself."""


class BundleDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One document as its maker signed it."""

    sort: DocumentSort
    content: bytes


class _Bundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Annotated[str, msgspec.Meta(pattern="^EvidenceBundle$")]
    version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    documents: Annotated[tuple[BundleDocument, ...], msgspec.Meta(max_length=_MAX_DOCUMENTS)]


@dataclass(frozen=True, slots=True)
class JudgedFinding:
    """One thing that a bundle shows.

    ``who`` is the key that signed, None where nobody's signature holds; ``says`` a sentence for people; ``documents``
    the places in the bundle that it follows from, from 0.
    """

    weight: Weight
    who: DidKey | None
    dataset_id: DatasetId | None
    says: str
    documents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a bundle shows, the gravest first; ``guilty`` are the keys proved to have contradicted themselves."""

    findings: tuple[JudgedFinding, ...]
    guilty: tuple[tuple[DidKey, DatasetId], ...]


_Claims = list[tuple[int, EquivocationKind, Claim]]
"""What single keys say, each with its place in the bundle."""


def encode_bundle(documents: Iterable[BundleDocument]) -> bytes:
    """Write a bundle: JSON that people can look into, each document once."""
    bundle = _Bundle(kind="EvidenceBundle", version=1, documents=tuple(dict.fromkeys(documents)))
    return msgspec.json.format(msgspec.json.encode(bundle), indent=1)


def decode_bundle(raw: bytes) -> tuple[BundleDocument, ...]:
    """Read a bundle from anybody; nothing in it is checked yet.

    Raises:
        MalformedError: Not a bundle, or too large.
    """
    if len(raw) > MAX_BUNDLE_BYTES:
        raise MalformedError("evidence", expected=f"at most {MAX_BUNDLE_BYTES} bytes", found=len(raw))
    try:
        return msgspec.json.decode(raw, type=_Bundle).documents
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("evidence", expected="a bundle of evidence", found=str(error)) from error


def judge(documents: Sequence[BundleDocument]) -> Judgement:
    """Say what is proved, what is only said, and what is worth nothing.

    Who speaks for a dataset is judged by the key log that the bundle has, as far as it has one (JUDGE-6).
    """
    histories = _fold_key_logs(documents)
    findings: list[JudgedFinding] = []
    claims: _Claims = []
    proofs: dict[tuple[DidKey, DatasetId], list[int]] = {}
    for place, document in enumerate(documents):
        try:
            findings.append(_READERS[document.sort](document.content, place, claims))
        except OdfError as error:
            findings.append(JudgedFinding(Weight.WORTHLESS, None, None, f"{document.sort.value}: {error}", (place,)))
            continue
        if document.sort is DocumentSort.EQUIVOCATION:
            proof = check_equivocation(document.content)
            findings[-1] = _proved(proof, (place,), histories)
            proofs.setdefault((proof.signer, proof.dataset_id), []).append(place)
    findings = _with_standing(findings, claims, histories)
    findings += _contradictions(claims, proofs, histories)
    order = (Weight.PROVED, Weight.CLAIMED, Weight.WORTHLESS)
    findings.sort(key=lambda found: (order.index(found.weight), "two histories" not in found.says, found.documents))
    return Judgement(tuple(findings), tuple(sorted(proofs, key=lambda pair: (str(pair[0]), str(pair[1])))))


_TOGETHER: Final = {
    **{frozenset({kind}): kind for kind in EquivocationKind},
    frozenset({EquivocationKind.HEADS, EquivocationKind.BLOCKS}): EquivocationKind.HEAD_AND_BLOCK,
}
"""What two documents prove if they contradict each other, by what each of them is."""


def _fold_key_logs(documents: Sequence[BundleDocument]) -> dict[DatasetId, KeyHistory]:
    raws: dict[DatasetId, list[bytes]] = {}
    for document in documents:
        if document.sort is DocumentSort.KEY_EVENT:
            try:
                event = decode_key_event(document.content)
            except OdfError:
                continue
            raws.setdefault(event.dataset_id, []).append(event.raw)
    return {dataset_id: fold_kept_events(dataset_id, found) for dataset_id, found in raws.items()}


def _with_standing(
    findings: Sequence[JudgedFinding], claims: _Claims, histories: Mapping[DatasetId, KeyHistory]
) -> list[JudgedFinding]:
    """Add to what keys signed whether they might, where the bundle has a key log to say so."""
    says = {place: _standing(kind, claim, histories) for place, kind, claim in claims}
    return [
        replace(found, says=f"{found.says} ({text})")
        if len(found.documents) == 1 and (text := says.get(found.documents[0]))
        else found
        for found in findings
    ]


def _standing(kind: EquivocationKind, claim: Claim, histories: Mapping[DatasetId, KeyHistory]) -> str:
    history = histories.get(claim.dataset_id)
    if history is None:
        return ""
    if kind is EquivocationKind.KEY_EVENTS:
        in_force = claim.hash in {event.hash for event in history.events}
        return "" if in_force else "void: not in the key log that follows from this bundle"
    if not history.speaks(claim.signer, claim.position):
        return "by the key log in this bundle, this key does not speak for this block"
    theft = history.find_theft(claim.signer)
    if theft is not None and claim.position >= theft.stolen_from:
        return f"by the key log in this bundle, this key was stolen from block {theft.stolen_from} on"
    return ""


def _contradictions(
    claims: _Claims, proofs: dict[tuple[DidKey, DatasetId], list[int]], histories: Mapping[DatasetId, KeyHistory]
) -> list[JudgedFinding]:
    """Find claims that contradict an earlier one without their sender having said so, each once (JUDGE-3)."""
    found = []
    first_two: dict[object, _Claims] = {}
    """Of each place and kind, with different hashes: whatever comes differs from one of them."""
    for other, other_kind, second in claims:
        rivals = [
            (one, together, first)
            for kind in EquivocationKind
            if (together := _TOGETHER.get(frozenset({kind, other_kind}))) is not None
            for one, _, first in first_two.get((kind, second.place), ())
            if first.hash != second.hash
        ]
        for one, together, first in sorted(rivals, key=lambda rival: rival[0]):
            try:
                proof = prove_equivocation(together, first.document, second.document)
            except (MalformedError, RejectedError):
                continue
            proofs.setdefault((proof.signer, proof.dataset_id), []).extend((one, other))
            found.append(_proved(proof, (one, other), histories))
            break
        earlier = first_two.setdefault((other_kind, second.place), [])
        if len(earlier) < 2 and all(first.hash != second.hash for _, _, first in earlier):
            earlier.append((other, other_kind, second))
    return found


def _proved(
    proof: EquivocationProof, places: tuple[int, ...], histories: Mapping[DatasetId, KeyHistory]
) -> JudgedFinding:
    whose = _whose(proof, histories.get(proof.dataset_id, KeyHistory.start(proof.dataset_id)))
    return JudgedFinding(Weight.PROVED, proof.signer, proof.dataset_id, f"{proof.explain()} ({whose})", places)


def _whose(proof: EquivocationProof, history: KeyHistory) -> str:
    theft = history.find_theft(proof.signer)
    if theft is not None and excuses(history, proof):
        return f"a key that a recovery declares stolen from block {theft.stolen_from} on: not the owner's word"
    if proof.signer == DidKey(proof.dataset_id.public_key):
        return "the key that the dataset began with"
    if proof.signer in {period.key for period in history.periods} | set(history.recovery_keys):
        return "a key that the dataset's key log names"
    return "a key that the dataset's key log would have to name"


def _read_head(raw: bytes, place: int, claims: _Claims) -> JudgedFinding:
    head = decode_signed_head(raw)
    claim = Claim(head.dataset_id, head.signer, head.sequence_number, head.block_hash, raw)
    claims.append((place, EquivocationKind.HEADS, claim))
    says = f"signed block {head.sequence_number} ({head.block_hash}) as the newest, dated {head.time}"
    return JudgedFinding(Weight.PROVED, head.signer, head.dataset_id, says, (place,))


def _read_block_statement(raw: bytes, place: int, claims: _Claims) -> JudgedFinding:
    claim = read_block_statement(raw)
    claims.append((place, EquivocationKind.BLOCKS, claim))
    says = f"signed block {claim.position} ({claim.hash})"
    return JudgedFinding(Weight.PROVED, claim.signer, claim.dataset_id, says, (place,))


def _read_key_event(raw: bytes, place: int, claims: _Claims) -> JudgedFinding:
    event = decode_key_event(raw)
    claim = Claim(event.dataset_id, event.signer, event.index, event.hash, raw)
    claims.append((place, EquivocationKind.KEY_EVENTS, claim))
    says = f"{event.explain()}, dated {event.time}"
    return JudgedFinding(Weight.PROVED, event.signer, event.dataset_id, says, (place,))


def _read_equivocation(raw: bytes, place: int, claims: _Claims) -> JudgedFinding:  # noqa: ARG001 - one shape for all readers
    return _proved(check_equivocation(raw), (place,), {})


def _read_settlement(raw: bytes, place: int, claims: _Claims) -> JudgedFinding:  # noqa: ARG001 - one shape for all readers
    stated = decode_settlement(raw)
    says = f"stands by block {stated.position} {stated.keeps} in the dispute {stated.proof.short}: {stated.reason}"
    return JudgedFinding(Weight.PROVED, stated.signer, stated.dataset_id, says, (place,))


def _read_statement(raw: bytes, place: int, claims: _Claims) -> JudgedFinding:  # noqa: ARG001 - one shape for all readers
    stated = decode_statement(raw)
    blocks = f"blocks {stated.first.sequence_number} to {stated.last.sequence_number} ({stated.last.hash.short})"
    match stated:
        case Attestation(verdict=Verdict.SUCCESS):
            text = f"says that it re-executed {blocks} with an equal result"
        case Attestation():
            wrong = [str(step.block.sequence_number) for step in stated.steps if not step.agrees]
            text = f"says that re-executing {blocks} gives something else in block {', '.join(wrong)}"
        case VerificationStatement(problem=None):
            text = f"says that {blocks} hold what they say"
        case VerificationStatement(problem=problem):
            text = f"says that {blocks} are not valid: {problem.detail if problem else ''}"
        case AcceptanceStatement():
            text = f"says that it accepted {blocks} as {stated.trust.value}: {stated.grounds}"
    return JudgedFinding(Weight.CLAIMED, stated.node, stated.dataset_id, text, (place,))


_READERS: Final[dict[DocumentSort, Callable[[bytes, int, _Claims], JudgedFinding]]] = {
    DocumentSort.SIGNED_HEAD: _read_head,
    DocumentSort.BLOCK_STATEMENT: _read_block_statement,
    DocumentSort.KEY_EVENT: _read_key_event,
    DocumentSort.EQUIVOCATION: _read_equivocation,
    DocumentSort.SETTLEMENT: _read_settlement,
    DocumentSort.STATEMENT: _read_statement,
}
