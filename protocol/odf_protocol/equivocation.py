"""Proofs that one key has said two things that cannot both be true; anyone can check them, nobody has to be believed.

============  ==========================================================================================
kind          two statements by one key
============  ==========================================================================================
``heads``     heads with one number and two hashes; or heads of different numbers with the blocks between, which show
              that the higher head does not stand on the lower one
``blocks``    block signatures with one number and two hashes
``head-and-block``  one of each, of one number, or with the blocks between as for heads
``key-events``  two events at one place of a key log
============  ==========================================================================================

A proof is canonical JSON with the two signed documents as they were received, the lower number, or else the smaller
bytes, first, so that whoever finds the same pair builds the same proof.

Source: clauses EQUIV-1 to EQUIV-8 in ``spec/extensions/equivocation.md``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from odf_protocol.block import Block, decode_block
from odf_protocol.canonical_json import Document, decode_canonical, encode_canonical
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.heads import decode_signed_head
from odf_protocol.key_events import decode_key_event
from odf_protocol.multihash import Multihash
from odf_protocol.signatures import Purpose, SignedDocument, block_payload

MAX_PROOF_BYTES: Final = 8 * 1024 * 1024  # guess: proofs travel by gossip; larger differences are met as other pairs
MAX_PATH_BLOCKS: Final = 4096  # guess: the size limit is reached about then
_BLOCK_PAYLOAD_BYTES: Final = 34 + 8 + 34
_MAX_DOCUMENT_BYTES: Final = 4096
_HEADER_BYTES: Final = 96  # key and signature of a signed document (SIG-5)

_SignedBytes = Annotated[bytes, msgspec.Meta(min_length=97, max_length=_MAX_DOCUMENT_BYTES)]


class EquivocationKind(StrEnum):
    """Which kind of statements contradict each other."""

    HEADS = "heads"
    BLOCKS = "blocks"
    HEAD_AND_BLOCK = "head-and-block"
    KEY_EVENTS = "key-events"


class _Proof(Document, frozen=True, kw_only=True):
    version: Literal[1]
    type: Literal["equivocation"]
    kind: Literal["heads", "blocks", "head-and-block", "key-events"]
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

    def shows_the_same(self, other: "EquivocationProof") -> bool:
        """Say whether another proof shows the same two histories, by whichever documents."""
        return (
            self.dataset_id == other.dataset_id
            and self.signer == other.signer
            and self.position == other.position
            and {self.first, self.second} == {other.first, other.second}
        )

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
        path: Where a head is among them and their numbers differ: raw blocks, from that of the higher statement down to
            the one that stands on the block which the lower statement is about.

    Raises:
        MalformedError, RejectedError: The two do not contradict each other, or are not what ``kind`` says.
    """
    if kind in _WITH_PATH:
        read = _READ_CLAIM[kind]
        first, second = sorted((one, other), key=lambda raw: (read(raw).position, raw))
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
    read = _READ_CLAIM[kind]
    first, second = read(proof.first), read(proof.second)
    if kind in _WITH_PATH:
        if kind is EquivocationKind.HEAD_AND_BLOCK and _is_head(proof.first) == _is_head(proof.second):
            raise RejectedError("EQUIV-2 one-head-and-one-block", found="two of one sort")
        return _check_on_path(kind, first, second, proof.path, bytes(raw))
    if proof.path:
        raise RejectedError("EQUIV-2 path-for-heads-only", found=f"{len(proof.path)} blocks")
    return _check_pair(kind, first, second, bytes(raw))


@dataclass(frozen=True, slots=True)
class Claim:
    """What a key says in one document: at this position of this dataset there is this."""

    dataset_id: DatasetId
    signer: DidKey
    position: int
    hash: Multihash
    document: bytes

    @property
    def place(self) -> tuple[DidKey, DatasetId, int]:
        """What a key may speak about once."""
        return self.signer, self.dataset_id, self.position


def read_block_statement(raw: bytes) -> Claim:
    """Read a block's signature as ``block_statement`` writes it.

    Raises:
        MalformedError: Not such a statement.
        RejectedError: The signature is not good.
    """
    document = SignedDocument.decode(raw, Purpose.BLOCK, max_payload_bytes=_BLOCK_PAYLOAD_BYTES)
    payload = document.payload
    if len(payload) != _BLOCK_PAYLOAD_BYTES:
        raise MalformedError("block statement", expected=f"{_BLOCK_PAYLOAD_BYTES} bytes", found=len(payload))
    number = int.from_bytes(payload[34:42], "little")
    return Claim(DatasetId.decode(payload[:34]), document.signer, number, Multihash.decode(payload[42:]), raw)


def _key_event_claim(raw: bytes) -> Claim:
    event = decode_key_event(raw)
    return Claim(event.dataset_id, event.signer, event.index, event.hash, raw)


def _head_claim(raw: bytes) -> Claim:
    head = decode_signed_head(raw)
    return Claim(head.dataset_id, head.signer, head.sequence_number, head.block_hash, raw)


def _is_head(raw: bytes) -> bool:
    """Tell a signed head from a block statement: one's payload is JSON, the other's begins with a kind of key."""
    return raw[_HEADER_BYTES : _HEADER_BYTES + 1] == b"{"


def _head_or_block_claim(raw: bytes) -> Claim:
    return _head_claim(raw) if _is_head(raw) else read_block_statement(raw)


_READ_CLAIM: Final[dict[EquivocationKind, Callable[[bytes], Claim]]] = {
    EquivocationKind.HEADS: _head_claim,
    EquivocationKind.BLOCKS: read_block_statement,
    EquivocationKind.HEAD_AND_BLOCK: _head_or_block_claim,
    EquivocationKind.KEY_EVENTS: _key_event_claim,
}
_WITH_PATH: Final = frozenset({EquivocationKind.HEADS, EquivocationKind.HEAD_AND_BLOCK})


def _check_on_path(
    kind: EquivocationKind, lower: Claim, higher: Claim, path: tuple[bytes, ...], raw: bytes
) -> EquivocationProof:
    if lower.position == higher.position:
        if path:
            raise RejectedError("EQUIV-5 no-path-between-equal-numbers", found=f"{len(path)} blocks")
        return _check_pair(kind, lower, higher, raw)
    beneath = _walk_down(higher, lower.position, path)
    return _check_pair(kind, lower, replace(higher, position=lower.position, hash=beneath), raw, in_order=True)


def _walk_down(claim: Claim, sequence_number: int, path: tuple[bytes, ...]) -> Multihash:
    """Return the hash that the chain below a claimed block has at a lower number, following the blocks of ``path``."""
    expected_blocks = claim.position - sequence_number
    if len(path) != expected_blocks:
        raise RejectedError(
            "EQUIV-5 path-reaches-the-lower-number", expected=f"{expected_blocks} blocks", found=len(path)
        )
    expected_hash = claim.hash
    for number, raw in zip(range(claim.position, sequence_number, -1), path, strict=True):
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
    kind: EquivocationKind, first: Claim, second: Claim, raw: bytes, *, in_order: bool = False
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
