"""Blocks as statements name them: by number and hash.

Source: clauses ATTEST-2, ATTEST-10 and ATTEST-20 in ``spec/extensions/attestations.md``.
"""

from dataclasses import dataclass

from odf_protocol.canonical_json import Count, Document, Text, parse_exact
from odf_protocol.errors import RejectedError
from odf_protocol.multihash import SHA3_256, Multihash


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
