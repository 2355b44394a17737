"""Ed25519 signatures that are detached from what they sign and say for what purpose they were made.

What is signed is never bare bytes: a fixed text, the purpose and the length come first, so that a signature made for
one purpose says nothing for another, whatever the bytes. A *signed document* is the key, the signature and the payload
as it was received, in this order; the signature is checked before the payload is read.

Verification is strict: one message and one key have the signatures that RFC 8032 signing can give and no other spelling
of them, and a key for which signatures can be made to fit any message is rejected.

Source: clauses SIG-1 to SIG-12 in ``spec/extensions/signatures.md``; RFC 8032 section 5.1.7.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

from odf_protocol.did import DatasetId, DidKey
from odf_protocol.ed25519 import is_signed, load_key
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.multihash import Multihash

PUBLIC_KEY_BYTES: Final = 32  # RFC 8032 section 5.1.5
SIGNATURE_BYTES: Final = 64  # RFC 8032 section 5.1.6
PREFIX: Final = b"odf-node-signature-v1\x00"

_FIELD_PRIME: Final = 2**255 - 19  # RFC 8032 section 5.1
_GROUP_ORDER: Final = 2**252 + 27742317777372353535851937790883648493  # RFC 8032 section 5.1, L
_SIGN_BIT: Final = 1 << 255

_ORDER_8_Y: Final = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER_Y: Final = frozenset({0, 1, _FIELD_PRIME - 1, _ORDER_8_Y, _FIELD_PRIME - _ORDER_8_Y})
"""The y coordinates of the eight points whose order divides 8; a test computes them from the curve."""


class Purpose(StrEnum):
    """What a signature is for; SIG-3 lists what each payload is."""

    BLOCK = "block"
    HEAD = "head"
    KEY_EVENT = "key-event"
    STEP_RECORD = "replay-record"
    PEER_RECORD = "peer-record"
    SETTLEMENT = "settlement"
    BACKUP = "backup"
    AUDIT = "audit"
    FINGERPRINT = "fingerprint"
    WAIVER = "contract-waiver"


@dataclass(frozen=True, slots=True)
class SignedDocument:
    """A payload somebody signed. Made by ``sign_document`` or from bytes by ``decode``, which verifies.

    Attributes:
        signer: Whose key it is; nothing here says that this key has any business to sign this payload.
        signature: 64 bytes.
        payload: The signed bytes, as received.
    """

    signer: DidKey
    signature: bytes = field(repr=False)
    payload: bytes

    def to_bytes(self) -> bytes:
        """Return key, signature and payload, as stored and sent."""
        return self.signer.public_key + self.signature + self.payload

    @classmethod
    def decode(cls, raw: bytes, purpose: Purpose, *, max_payload_bytes: int) -> Self:
        """Verify, then split (SIG-6).

        Raises:
            MalformedError: Too short or too long.
            RejectedError: The signature is not this key's signature of this payload for this purpose.
        """
        header_bytes = PUBLIC_KEY_BYTES + SIGNATURE_BYTES
        if not header_bytes < len(raw) <= header_bytes + max_payload_bytes:
            limits = f"{header_bytes + 1} to {header_bytes + max_payload_bytes} bytes"
            raise MalformedError(f"signed {purpose}", expected=limits, found=len(raw))
        key, signature, payload = raw[:PUBLIC_KEY_BYTES], raw[PUBLIC_KEY_BYTES:header_bytes], raw[header_bytes:]
        verify(key, purpose, payload, signature)
        return cls(DidKey(bytes(key)), bytes(signature), bytes(payload))


def public_key_of(private_key: bytes) -> bytes:
    """Return the 32 bytes of the public key that belongs to the 32 bytes of a private key."""
    return load_key(private_key).public_key().public_bytes_raw()


def sign(private_key: bytes, purpose: Purpose, payload: bytes) -> bytes:
    """Sign a payload for a purpose and return the 64 bytes of the signature."""
    return sign_bytes(private_key, _framed(purpose, payload))


def verify(public_key: bytes, purpose: Purpose, payload: bytes, signature: bytes) -> None:
    """Check that ``signature`` was made with a key for exactly this purpose and payload.

    Raises:
        RejectedError: It was not; ``rule`` says which check failed.
    """
    verify_bytes(public_key, _framed(purpose, payload), signature)


def sign_document(private_key: bytes, purpose: Purpose, payload: bytes) -> SignedDocument:
    """Sign a payload and keep key, signature and payload together."""
    key = load_key(private_key)  # computes the public key, which is half of the work
    return SignedDocument(DidKey(key.public_key().public_bytes_raw()), key.sign(_framed(purpose, payload)), payload)


def sign_readable(private_key: bytes, purpose: Purpose, payload: bytes, decode: Callable[[bytes], object]) -> bytes:
    """Sign a payload and return the document as stored and sent.

    Raises:
        ValueError: ``decode``, its reader, would reject it.
    """
    raw = sign_document(private_key, purpose, payload).to_bytes()
    try:
        decode(raw)
    except RejectedError as error:
        raise ValueError(str(error)) from error
    return raw


def sign_block(private_key: bytes, dataset_id: DatasetId, sequence_number: int, block_hash: Multihash) -> bytes:
    """Sign a block: "the block with this number in this dataset is this one" (SIG-7)."""
    return sign(private_key, Purpose.BLOCK, block_payload(dataset_id, sequence_number, block_hash))


def verify_block_signature(
    signature: bytes,
    dataset_id: DatasetId,
    sequence_number: int,
    block_hash: Multihash,
    *,
    public_key: bytes | None = None,
) -> None:
    """Check a block's signature.

    Args:
        signature: 64 bytes, untrusted.
        dataset_id: Whose chain the block is in.
        sequence_number: From the block's bytes.
        block_hash: Of the block's bytes.
        public_key: The key in force at the block where the dataset has changed its key; otherwise the dataset's own.

    Raises:
        RejectedError: Not a signature of this block by this key.
    """
    key = dataset_id.public_key if public_key is None else public_key
    try:
        verify(key, Purpose.BLOCK, block_payload(dataset_id, sequence_number, block_hash), signature)
    except RejectedError as error:
        raise RejectedError(
            error.rule, sequence_number=sequence_number, expected=error.expected, found=error.found
        ) from error


def block_payload(dataset_id: DatasetId, sequence_number: int, block_hash: Multihash) -> bytes:
    """Return what a block signature signs: 34 bytes of identity, 8 of number (little-endian), the multihash (SIG-7)."""
    return dataset_id.to_bytes() + sequence_number.to_bytes(8, "little") + block_hash.to_bytes()


def sign_bytes(private_key: bytes, message: bytes) -> bytes:
    """Sign bytes that already are framed by a format of their own, such as DSSE's."""
    return load_key(private_key).sign(message)


def verify_bytes(public_key: bytes, message: bytes, signature: bytes) -> None:
    """Verify strictly (SIG-8 to SIG-11); for messages framed by a format of their own.

    Raises:
        RejectedError: ``rule`` says which check failed.
    """
    if len(public_key) != PUBLIC_KEY_BYTES:
        raise RejectedError("SIG-8 key-length", expected=f"{PUBLIC_KEY_BYTES} bytes", found=len(public_key))
    if len(signature) != SIGNATURE_BYTES:
        raise RejectedError("SIG-8 signature-length", expected=f"{SIGNATURE_BYTES} bytes", found=len(signature))
    _require_ordinary_point(public_key, "SIG-9 key-is-an-ordinary-point")
    _require_ordinary_point(signature[:32], "SIG-10 commitment-is-an-ordinary-point")
    if int.from_bytes(signature[32:], "little") >= _GROUP_ORDER:
        raise RejectedError("SIG-11 scalar-is-reduced", expected="S below the group order", found="S at or above it")

    if not is_signed(bytes(public_key), bytes(signature), message):
        raise RejectedError("SIG-1 signature", expected=f"a signature by {DidKey(bytes(public_key))}")


def _framed(purpose: Purpose, payload: bytes) -> bytes:
    name = purpose.value.encode("ascii")
    return b"".join((PREFIX, bytes([len(name)]), name, len(payload).to_bytes(8, "little"), payload))


def _require_ordinary_point(encoded: bytes, rule: str) -> None:
    y = int.from_bytes(encoded, "little") & ~_SIGN_BIT
    if y >= _FIELD_PRIME:
        raise RejectedError(rule, expected="a coordinate below the field prime", found="one at or above it")
    if y in _SMALL_ORDER_Y:
        raise RejectedError(rule, expected="a point of large order", found="one whose order divides 8")
