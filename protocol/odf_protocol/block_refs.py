"""Blocks as statements name them: by number and hash, and as what an in-toto statement is about.

Source: clauses ATTEST-2, ATTEST-3, ATTEST-10 and ATTEST-20 in ``spec/extensions/attestations.md``; in-toto Statement
v1.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec

from odf_protocol.canonical_json import Count, Document, ShortText, Text, parse_exact
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError
from odf_protocol.multihash import SHA3_256, Multihash

__all__ = ["BlockDocument", "BlockRef", "Subject", "document_of", "parse_block_ref", "subject_of"]


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block by number and hash."""

    sequence_number: int
    hash: Multihash


class Digest(Document, frozen=True, kw_only=True):
    """The hash of what a statement is about."""

    sha3_256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] = msgspec.field(name="sha3_256")


class Subject(Document, frozen=True, kw_only=True):
    """What a statement is about."""

    name: ShortText
    digest: Digest


class BlockDocument(Document, frozen=True, kw_only=True):
    """A block as it is written."""

    sequence_number: Count
    hash: Text


def subject_of(dataset_id: DatasetId, last: BlockRef) -> Subject:
    """Name the last of the blocks that a statement is about; its hash fixes all before it."""
    return Subject(name=f"{dataset_id}/blocks/{last.sequence_number}", digest=Digest(sha3_256=last.hash.digest.hex()))


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
