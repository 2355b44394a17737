"""Metadata blocks: bytes first, and what they say beside them.

A block is hashed, signed, stored, sent and forwarded as the bytes it arrived in. The decoded view is for reading;
nothing ever encodes it again.

Source: ODF "Metadata Block", "Metadata Block Hashing"; clauses WIRE-1 and WIRE-2 of ``spec/odf-profile.md``.
"""

from dataclasses import dataclass, field

from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import Event
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.wire.envelope import MetadataBlock, decode_envelope, encode_envelope
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES

LATEST_VERSION = 3


class UnsupportedBlockError(UnsupportedError):
    """A block of a version, or with an event, field or value, that we do not know; nothing in it is guessed (WIRE-13).

    Attributes:
        raw: The block's bytes, as they came: whoever stores or forwards blocks can, without understanding them.
        hash: Their SHA3-256.
    """

    def __init__(self, reason: UnsupportedError, raw: bytes, block_hash: Multihash) -> None:
        super().__init__(reason.what, found=reason.found, supported=reason.supported)
        self.raw = raw
        self.hash = block_hash


@dataclass(frozen=True, slots=True, init=False)
class Block:
    """A block and its decoded view, which cannot disagree: it is made from bytes and from nothing else.

    Attributes:
        raw: The bytes.
        hash: SHA3-256 of all of them; the block's identity.
        version: 2 or 3.
        system_time: When the writer made it, by the writer's clock.
        prev_block_hash: None in the first block of a chain.
        sequence_number: 0 in the first block.
        event: What the block says.
    """

    raw: bytes = field(repr=False)
    hash: Multihash
    version: int = field(compare=False)
    system_time: Timestamp = field(compare=False)
    prev_block_hash: Multihash | None = field(compare=False)
    sequence_number: int = field(compare=False)
    event: Event = field(compare=False)

    def __init__(self, raw: bytes, *, expected_hash: Multihash | None) -> None:
        """Bound, hash, then decode; see ``decode_block``."""
        if len(raw) > MAX_BLOCK_SIZE_BYTES:
            raise MalformedError("block", expected=f"at most {MAX_BLOCK_SIZE_BYTES} bytes", found=len(raw))
        found_hash = Multihash.of_sha3_256(raw)
        if expected_hash is not None and found_hash != expected_hash:
            raise MalformedError("block", expected=f"hash {expected_hash}", found=found_hash)
        try:
            version, content = decode_envelope(raw)
        except UnsupportedError as error:
            raise UnsupportedBlockError(error, raw, found_hash) from error
        for name, value in (
            ("raw", raw),
            ("hash", found_hash),
            ("version", version),
            ("system_time", content.system_time),
            ("prev_block_hash", content.prev_block_hash),
            ("sequence_number", content.sequence_number),
            ("event", content.event),
        ):
            object.__setattr__(self, name, value)


def decode_block(raw: bytes, *, expected_hash: Multihash | None) -> Block:
    """Check and decode untrusted bytes.

    Args:
        raw: The whole block.
        expected_hash: What the bytes must hash to; None only where nothing is known yet, such as a
            block just encoded or a chain that is linked afterwards.

    Raises:
        MalformedError: Too large, another hash, or not a block.
        UnsupportedBlockError: A version, event or field that we do not know; it carries the bytes.
    """
    return Block(bytes(raw), expected_hash=expected_hash)


def encode_block(
    event: Event,
    *,
    system_time: Timestamp,
    prev_block_hash: Multihash | None,
    sequence_number: int,
    version: int = LATEST_VERSION,
) -> bytes:
    """Encode a new block.

    Args:
        event: What the block says.
        system_time: Now, by the caller's clock.
        prev_block_hash: Head of the chain; None for a Seed.
        sequence_number: That of the head plus 1; 0 for a Seed.
        version: 3, or 2 for peers that know nothing newer.

    Raises:
        ValueError: We do not write this version, or a number does not fit its field.
    """
    block = MetadataBlock(
        system_time=system_time, prev_block_hash=prev_block_hash, sequence_number=sequence_number, event=event
    )
    return encode_envelope(block, version)
