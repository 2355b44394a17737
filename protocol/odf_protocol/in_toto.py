"""In-toto statements about blocks: what all kinds of them share, in DSSE envelopes.

A statement is about the last of some blocks, whose hash fixes all blocks before it. What it says of them is its
predicate, which each kind of statement declares for itself.

Source: clauses ATTEST-1, ATTEST-3 and ATTEST-4 in ``spec/extensions/attestations.md``; in-toto Statement v1.
"""

from collections.abc import Callable
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from odf_protocol.block_refs import BlockRef
from odf_protocol.canonical_json import Document, ShortText, decode_canonical, encode_canonical
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.dsse import decode_envelope, sign_envelope
from odf_protocol.errors import MalformedError, RejectedError

__all__ = [
    "PAYLOAD_TYPE",
    "STATEMENT_TYPE",
    "InTotoStatement",
    "Subject",
    "read_statement",
    "require_signed_by",
    "require_subject",
    "sign_statement",
    "subject_of",
]

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"  # in-toto "Envelope layer"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"  # in-toto "Statement layer"


class Digest(Document, frozen=True, kw_only=True):
    """The hash of what a statement is about."""

    sha3_256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] = msgspec.field(name="sha3_256")


class Subject(Document, frozen=True, kw_only=True):
    """What a statement is about."""

    name: ShortText
    digest: Digest


class InTotoStatement(Document, frozen=True, kw_only=True):
    """The statement layer; a kind of statement adds ``predicate_type``, a literal of its own, and ``predicate``."""

    statement_type: Literal["https://in-toto.io/Statement/v1"] = msgspec.field(name="_type")
    subject: Annotated[tuple[Subject, ...], msgspec.Meta(min_length=1, max_length=1)]


S = TypeVar("S", bound=InTotoStatement)


def subject_of(dataset_id: DatasetId, last: BlockRef) -> tuple[Subject]:
    """Name the last of the blocks that a statement is about; its hash fixes all before it."""
    digest = Digest(sha3_256=last.hash.digest.hex())
    return (Subject(name=f"{dataset_id}/blocks/{last.sequence_number}", digest=digest),)


def sign_statement(private_key: bytes, statement: InTotoStatement, decode: Callable[[bytes], object]) -> bytes:
    """Put a statement into an envelope, signed.

    Args:
        private_key: Of the node that makes the statement.
        statement: What it says.
        decode: The kind's own reader.

    Returns:
        The envelope as stored and sent.

    Raises:
        ValueError: The reader would refuse it.
    """
    raw = sign_envelope(private_key, PAYLOAD_TYPE, encode_canonical(statement))
    try:
        decode(raw)
    except (MalformedError, RejectedError) as error:
        raise ValueError(str(error)) from error
    return raw


def read_statement(raw: bytes, kind: type[S], *, what: str, max_bytes: int) -> tuple[S, tuple[DidKey, ...]]:
    """Verify an envelope and read the statement in it; says who signed, too.

    Raises:
        MalformedError: Not an envelope, or not a statement of this kind.
        RejectedError: A signature is not good.
    """
    envelope = decode_envelope(raw, payload_type=PAYLOAD_TYPE)
    return decode_canonical(envelope.payload, kind, what=what, max_bytes=max_bytes), envelope.signers


def require_subject(statement: InTotoStatement, dataset_id: DatasetId, last: BlockRef) -> None:
    """Require that a statement is about the last of the blocks that its predicate names (ATTEST-3).

    Raises:
        RejectedError: It is about something else.
    """
    if statement.subject != subject_of(dataset_id, last):
        raise RejectedError("ATTEST-3 subject-is-the-last-block", expected=last, found=statement.subject[0])


def require_signed_by(node: DidKey, signers: tuple[DidKey, ...]) -> None:
    """Require that the node that a statement names has signed it (ATTEST-4).

    Raises:
        RejectedError: Others did.
    """
    if node not in signers:
        raise RejectedError("ATTEST-4 signed-by-its-node", expected=node, found=list(map(str, signers)))
