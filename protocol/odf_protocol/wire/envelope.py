"""The two tables around every event.

A block is a ``Manifest`` whose content is the bytes of a second FlatBuffer, the ``MetadataBlock``. Neither buffer has
a file identifier or a size prefix.

Source: ODF "Metadata Block Hashing".
"""

from dataclasses import dataclass

from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import Event
from odf_protocol.events.declaration import I32, I64, U64
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp
from odf_protocol.wire.decoder import Decoder
from odf_protocol.wire.encoder import encode_root
from odf_protocol.wire.limits import MAX_BLOCK_SIZE_BYTES

METADATA_BLOCK_CODE = 0x400000  # multicodec odf-metadata-block

# The versions differ in one thing: version 2 aligns the Timestamp struct to 1 byte, version 3 to 4 as it should be.
TIMESTAMP_ALIGNMENT = {2: 1, 3: 4}
SUPPORTED_VERSIONS = tuple(TIMESTAMP_ALIGNMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The outer table."""

    kind: I64
    version: I32
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBlock:
    """The inner table: when, after which block, and what."""

    system_time: Timestamp
    prev_block_hash: Multihash | None
    sequence_number: U64
    event: Event


def encode_envelope(block: MetadataBlock, version: int) -> bytes:
    """Encode a block.

    Raises:
        ValueError: We do not write this version, or a number does not fit its field.
    """
    if version not in TIMESTAMP_ALIGNMENT:
        raise ValueError(f"block version {version} is not one of {SUPPORTED_VERSIONS}")
    content = encode_root(block, TIMESTAMP_ALIGNMENT[version])
    return encode_root(Manifest(kind=METADATA_BLOCK_CODE, version=version, content=content))


def decode_envelope(raw: bytes) -> tuple[int, MetadataBlock]:
    """Decode untrusted bytes.

    Returns:
        Version and content. Positions in errors of the content count from its own start.

    Raises:
        MalformedError: Not a block (WIRE-1, WIRE-4 to WIRE-12).
        UnsupportedError: Another version, an unknown event, or fields we do not know (WIRE-3, WIRE-13).
    """
    if len(raw) > MAX_BLOCK_SIZE_BYTES:
        raise MalformedError("block", expected=f"at most {MAX_BLOCK_SIZE_BYTES} bytes", found=len(raw))
    manifest = Decoder(raw).decode_root(Manifest)
    if manifest.kind != METADATA_BLOCK_CODE:
        raise MalformedError("block", expected=f"manifest kind {METADATA_BLOCK_CODE:#x}", found=hex(manifest.kind))
    if manifest.version not in TIMESTAMP_ALIGNMENT:
        raise UnsupportedError("block version", found=manifest.version, supported=SUPPORTED_VERSIONS)
    return manifest.version, Decoder(manifest.content).decode_root(MetadataBlock)
