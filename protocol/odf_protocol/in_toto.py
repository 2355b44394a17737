"""In-toto statements about blocks: what all kinds of them share, in DSSE envelopes.

A statement is about the last of some blocks, whose hash fixes all blocks before it. What it says of them is its
predicate, which each kind of statement declares for itself.

Source: clauses ATTEST-1 to ATTEST-4, ATTEST-10, ATTEST-20 in ``spec/extensions/attestations.md``; in-toto Statement v1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypedDict, TypeVar

import msgspec

from odf_protocol.canonical_json import (
    Count,
    Document,
    ShortText,
    Text,
    decode_canonical,
    encode_canonical,
    parse_exact,
)
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.dsse import decode_envelope, sign_envelope
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.multihash import SHA3_256, Multihash
from odf_protocol.signatures import public_key_of
from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block by number and hash."""

    sequence_number: int
    hash: Multihash


class BlockDocument(Document, frozen=True, kw_only=True):
    """A block as it is written."""

    sequence_number: Count
    hash: Text


def document_of(block: BlockRef) -> BlockDocument:
    """Write a block down."""
    return BlockDocument(sequence_number=block.sequence_number, hash=str(block.hash))


def parse_block_ref(sequence_number: int, text: str, *, clause: str) -> BlockRef:
    """Read a block that somebody names.

    Raises:
        MalformedError: The hash is none.
        RejectedError: It is of a kind that no block has; ``clause`` is the one that is broken.
    """
    block_hash = parse_exact(Multihash, text, "block hash")
    if block_hash.code != SHA3_256:
        raise RejectedError(f"{clause} block-hash-is-sha3-256", expected=hex(SHA3_256), found=hex(block_hash.code))
    return BlockRef(sequence_number, block_hash)


PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"  # in-toto "Envelope layer"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"  # in-toto "Statement layer"


class Digest(Document, frozen=True, kw_only=True):
    """The hash of what a statement is about."""

    sha3_256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] = msgspec.field(name="sha3_256")


class Subject(Document, frozen=True, kw_only=True):
    """What a statement is about."""

    name: ShortText
    digest: Digest


class StatementPredicate(Document, frozen=True, kw_only=True):
    """What every kind of statement says: who speaks, of which blocks, and when."""

    node: Text
    dataset: Text
    first_block: BlockDocument
    last_block: BlockDocument
    time: Text


class InTotoStatement(Document, frozen=True, kw_only=True):
    """The statement layer; a kind has a literal of its own as ``predicate_type``, and a ``predicate`` of its own."""

    statement_type: Literal["https://in-toto.io/Statement/v1"] = msgspec.field(name="_type")
    subject: Annotated[tuple[Subject, ...], msgspec.Meta(min_length=1, max_length=1)]
    predicate_type: str
    predicate: StatementPredicate


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatement:
    """What a node said, verified; made by the reader of its kind only, so the node has signed it.

    Attributes:
        node: Who speaks.
        dataset_id: Whose blocks.
        first: First of the blocks.
        last: Last of the blocks.
        time: When, by the node's clock.
        signers: The node, and whoever signed with it.
        raw: The envelope as received.
    """

    node: DidKey
    dataset_id: DatasetId
    first: BlockRef
    last: BlockRef
    time: Timestamp
    signers: tuple[DidKey, ...]
    raw: bytes = field(repr=False)


class _Written(TypedDict):
    node: str
    dataset: str
    first_block: BlockDocument
    last_block: BlockDocument
    time: str


class _StatedFields(TypedDict):
    node: DidKey
    dataset_id: DatasetId
    first: BlockRef
    last: BlockRef
    time: Timestamp
    signers: tuple[DidKey, ...]
    raw: bytes


S = TypeVar("S", bound=InTotoStatement)


def begin_predicate(
    private_key: bytes, dataset_id: DatasetId, first: BlockRef, last: BlockRef, time: Timestamp
) -> _Written:
    """Write down what every kind of statement says, for the predicate of one kind."""
    return {
        "node": str(DidKey(public_key_of(private_key))),
        "dataset": str(dataset_id),
        "first_block": document_of(first),
        "last_block": document_of(last),
        "time": str(time),
    }


def sign_statement(
    private_key: bytes,
    kind: type[S],
    predicate_type: str,
    predicate: StatementPredicate,
    decode: Callable[[bytes], object],
) -> bytes:
    """Put a statement into an envelope, signed.

    Args:
        private_key: Of the node that makes the statement.
        kind: What kind of statement.
        predicate_type: The kind's own.
        predicate: What it says.
        decode: The kind's own reader.

    Returns:
        The envelope as stored and sent.

    Raises:
        ValueError: The reader would reject it.
    """
    statement = kind(
        statement_type=STATEMENT_TYPE,
        subject=_subject_of(predicate),
        predicate_type=predicate_type,
        predicate=predicate,
    )
    raw = sign_envelope(private_key, PAYLOAD_TYPE, encode_canonical(statement))
    try:
        decode(raw)
    except (MalformedError, RejectedError) as error:
        raise ValueError(str(error)) from error
    return raw


def read_statement(raw: bytes, kind: type[S], *, what: str, max_bytes: int, clause: str) -> tuple[S, _StatedFields]:
    """Verify an envelope and read the statement in it, and of this what every kind says.

    Args:
        raw: The envelope.
        kind: What kind of statement it must hold.
        what: The kind's name, for messages.
        max_bytes: Longer statements are rejected.
        clause: The one that is broken where a block has a hash that no block has.

    Raises:
        MalformedError: Not an envelope, or not a statement of this kind.
        UnsupportedError: An identifier with a key of another kind.
        RejectedError: A signature is not good, the statement is not about the last of the blocks that it names
            (ATTEST-3), or others signed it than the node that it names (ATTEST-4).
    """
    envelope = decode_envelope(raw, payload_type=PAYLOAD_TYPE)
    statement = decode_canonical(envelope.payload, kind, what=what, max_bytes=max_bytes)
    stated = statement.predicate
    fields: _StatedFields = {
        "node": parse_exact(DidKey, stated.node, f"{what} node"),
        "dataset_id": parse_exact(DatasetId, stated.dataset, f"{what} dataset"),
        "first": parse_block_ref(stated.first_block.sequence_number, stated.first_block.hash, clause=clause),
        "last": parse_block_ref(stated.last_block.sequence_number, stated.last_block.hash, clause=clause),
        "time": parse_exact(Timestamp, stated.time, f"{what} time"),
        "signers": envelope.signers,
        "raw": bytes(raw),
    }
    if statement.subject != _subject_of(stated):
        raise RejectedError("ATTEST-3 subject-is-the-last-block", expected=fields["last"], found=statement.subject[0])
    if fields["node"] not in envelope.signers:
        signers = list(map(str, envelope.signers))
        raise RejectedError("ATTEST-4 signed-by-its-node", expected=fields["node"], found=signers)
    return statement, fields


def _subject_of(stated: StatementPredicate) -> tuple[Subject]:
    """Name the last of the blocks that a statement is about; its hash fixes all before it."""
    last = stated.last_block
    digest = Digest(sha3_256=Multihash.parse(last.hash).digest.hex())
    return (Subject(name=f"{stated.dataset}/blocks/{last.sequence_number}", digest=digest),)
