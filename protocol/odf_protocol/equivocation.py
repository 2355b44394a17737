"""Proofs that one key has said two things that cannot both be true; anyone can check them, nobody has to be believed.

============  ==========================================================================================
kind          two statements by one key
============  ==========================================================================================
``heads``     heads with one number and two hashes; or heads of different numbers with the blocks between, which show
              that the higher head does not stand on the lower one
``blocks``    block signatures with one number and two hashes
``key-events``  two events at one place of a key log
============  ==========================================================================================

A proof is canonical JSON with the two signed documents as they were received, the smaller bytes (for heads: the lower
number) first, so that whoever finds the same pair builds the same proof.

Source: clauses EQUIV-1 to EQUIV-8 in ``spec/extensions/equivocation.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from odf_protocol.block import Block, decode_block
from odf_protocol.canonical_json import Document, decode_canonical, encode_canonical
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.heads import SignedHead, decode_signed_head
from odf_protocol.key_events import decode_key_event
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, SignedDocument, block_payload

__all__ = [
    "MAX_PATH_BLOCKS",
    "MAX_PROOF_BYTES",
    "EquivocationKind",
    "EquivocationProof",
    "block_statement",
    "check_equivocation",
    "prove_equivocation",
]

MAX_PROOF_BYTES: Final = 8 * 1024 * 1024  # guess: proofs travel by gossip; larger differences are met as other pairs
MAX_PATH_BLOCKS: Final = 4096  # guess: the size limit is reached about then
_BLOCK_PAYLOAD_BYTES: Final = 34 + 8 + 34
_MAX_DOCUMENT_BYTES: Final = 4096

_SignedBytes = Annotated[bytes, msgspec.Meta(min_length=97, max_length=_MAX_DOCUMENT_BYTES)]


class EquivocationKind(StrEnum):
    """Which kind of statements contradict each other."""

    HEADS = "heads"
    BLOCKS = "blocks"
    KEY_EVENTS = "key-events"


class _Proof(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["equivocation"]
    kind: Literal["heads", "blocks", "key-events"]
    first: _SignedBytes
    second: _SignedBytes
    path: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=MAX_PATH_BLOCKS)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivocationProof:
    """A checked proof; made by ``check_equivocation`` only.

    Attributes:
        kind: What contradicts.
        dataset_id: Whose history has two versions.
        signer: The key that signed both.
        position: Block number, or place in the key log, at which the versions differ.
        first: What one version has there.
        second: What the other version has there.
        raw: The proof as received.
    """

    kind: EquivocationKind
    dataset_id: DatasetId
    signer: DidKey
    position: int
    first: Multihash
    second: Multihash
    raw: bytes = field(repr=False)

    @property
    def documents(self) -> tuple[bytes, bytes]:
        """The two signed documents, as received."""
        proof = decode_canonical(self.raw, _Proof, what="equivocation proof", max_bytes=MAX_PROOF_BYTES)
        return proof.first, proof.second

    def explain(self) -> str:
        """Say in one sentence what was proved."""
        what = "key event" if self.kind is EquivocationKind.KEY_EVENTS else "block"
        return (
            f"the key {self.signer} signed two histories of {self.dataset_id}: "
            f"{what} {self.position} is {self.first} in one and {self.second} in the other"
        )


def block_statement(
    dataset_id: DatasetId, sequence_number: int, block_hash: Multihash, signer: DidKey, signature: bytes
) -> bytes:
    """Return a block's detached signature as a signed document, for ``prove_equivocation``."""
    payload = block_payload(dataset_id, sequence_number, block_hash)
    return SignedDocument(signer, signature, payload).to_bytes()


def prove_equivocation(
    kind: EquivocationKind, one: bytes, other: bytes, *, path: Sequence[bytes] = ()
) -> EquivocationProof:
    """Build a proof from two signed documents.

    Args:
        kind: What they are.
        one: A signed head, block statement or key event, as received.
        other: Another one by the same key about the same dataset.
        path: For heads of different numbers: raw blocks, from that of the higher head down to the one that stands on
            the block which the lower head should have been.

    Raises:
        MalformedError, RejectedError: The two do not contradict each other, or are not what ``kind`` says.
    """
    if kind is EquivocationKind.HEADS:
        first, second = sorted((one, other), key=lambda raw: (decode_signed_head(raw).sequence_number, raw))
    else:
        first, second = sorted((one, other))
    raw = encode_canonical(
        _Proof(version=1, type="equivocation", kind=kind.value, first=first, second=second, path=tuple(path))
    )
    return check_equivocation(raw)


def check_equivocation(raw: bytes) -> EquivocationProof:
    """Check a proof of anybody's (EQUIV-1 to EQUIV-7).

    The result says which key contradicted itself. Whether that key spoke for the dataset is decided by the dataset's
    identity or its key history, which the caller has (EQUIV-8).

    Raises:
        MalformedError: Not a proof.
        RejectedError: It proves nothing; ``rule`` says why.
    """
    proof = decode_canonical(raw, _Proof, what="equivocation proof", max_bytes=MAX_PROOF_BYTES)
    kind = EquivocationKind(proof.kind)
    if proof.path and kind is not EquivocationKind.HEADS:
        raise RejectedError("EQUIV-2 path-for-heads-only", found=f"{len(proof.path)} blocks")
    match kind:
        case EquivocationKind.HEADS:
            return _check_heads(proof, bytes(raw))
        case EquivocationKind.BLOCKS:
            return _check_pair(EquivocationKind.BLOCKS, *_block_claims(proof), bytes(raw))
        case EquivocationKind.KEY_EVENTS:
            return _check_pair(EquivocationKind.KEY_EVENTS, *_key_event_claims(proof), bytes(raw))


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a key says in one document: at this position of this dataset there is this."""

    dataset_id: DatasetId
    signer: DidKey
    position: int
    hash: Multihash
    document: bytes


def _block_claims(proof: _Proof) -> tuple[_Claim, _Claim]:
    return _block_claim(proof.first), _block_claim(proof.second)


def _block_claim(raw: bytes) -> _Claim:
    document = SignedDocument.decode(raw, Purpose.BLOCK, max_payload_bytes=_BLOCK_PAYLOAD_BYTES)
    payload = document.payload
    if len(payload) != _BLOCK_PAYLOAD_BYTES:
        raise MalformedError("block statement", expected=f"{_BLOCK_PAYLOAD_BYTES} bytes", found=len(payload))
    number = int.from_bytes(payload[34:42], "little")
    return _Claim(DatasetId.decode(payload[:34]), document.signer, number, Multihash.decode(payload[42:]), raw)


def _key_event_claims(proof: _Proof) -> tuple[_Claim, _Claim]:
    one, other = decode_key_event(proof.first), decode_key_event(proof.second)
    return (
        _Claim(one.dataset_id, one.signer, one.index, one.hash, proof.first),
        _Claim(other.dataset_id, other.signer, other.index, other.hash, proof.second),
    )


def _head_claim(head: SignedHead) -> _Claim:
    return _Claim(head.dataset_id, head.signer, head.sequence_number, head.block_hash, head.raw)


def _check_heads(proof: _Proof, raw: bytes) -> EquivocationProof:
    lower, higher = decode_signed_head(proof.first), decode_signed_head(proof.second)
    if lower.sequence_number == higher.sequence_number:
        if proof.path:
            raise RejectedError("EQUIV-5 no-path-between-equal-numbers", found=f"{len(proof.path)} blocks")
        return _check_pair(EquivocationKind.HEADS, _head_claim(lower), _head_claim(higher), raw)
    beneath = _walk_down(higher, lower.sequence_number, proof.path)
    there = _Claim(higher.dataset_id, higher.signer, lower.sequence_number, beneath, higher.raw)
    return _check_pair(EquivocationKind.HEADS, _head_claim(lower), there, raw, in_order=True)


def _walk_down(head: SignedHead, sequence_number: int, path: tuple[bytes, ...]) -> Multihash:
    """Return the hash that a head's chain has at a lower number, following the raw blocks of ``path``."""
    expected_blocks = head.sequence_number - sequence_number
    if len(path) != expected_blocks:
        raise RejectedError(
            "EQUIV-5 path-reaches-the-lower-head", expected=f"{expected_blocks} blocks", found=len(path)
        )
    expected_hash = head.block_hash
    for number, raw in zip(range(head.sequence_number, sequence_number, -1), path, strict=True):
        block = _linked_block(raw, expected_hash)
        if block.sequence_number != number or block.prev_block_hash is None:
            raise RejectedError("EQUIV-6 path-counts-down", expected=number, found=block.sequence_number)
        expected_hash = block.prev_block_hash
    return expected_hash


def _linked_block(raw: bytes, expected_hash: Multihash) -> Block:
    try:
        return decode_block(raw, expected_hash=expected_hash)
    except UnsupportedError as error:
        raise RejectedError("EQUIV-6 path-is-readable", found=error) from error


def _check_pair(
    kind: EquivocationKind, first: _Claim, second: _Claim, raw: bytes, *, in_order: bool = False
) -> EquivocationProof:
    for what, one, other in (
        ("dataset", first.dataset_id, second.dataset_id),
        ("signer", first.signer, second.signer),
        ("position", first.position, second.position),
    ):
        if one != other:
            raise RejectedError(f"EQUIV-3 same-{what}", expected=one, found=other)
    if first.hash == second.hash:
        raise RejectedError("EQUIV-4 statements-differ", found=first.hash)
    if not in_order and first.document >= second.document:
        raise RejectedError("EQUIV-7 smaller-document-first", found="the other order")
    return EquivocationProof(
        kind=kind,
        dataset_id=first.dataset_id,
        signer=first.signer,
        position=first.position,
        first=first.hash,
        second=second.hash,
        raw=raw,
    )
