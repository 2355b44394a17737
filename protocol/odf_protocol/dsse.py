"""DSSE envelopes: JSON that carries a payload, its type and the signatures of one or several parties.

The profile here is stricter than DSSE: the envelope is canonical JSON, ``keyid`` is a ``did:key``, the signatures are
sorted by it, and an envelope with a single bad signature is rejected as a whole. So an ``Envelope`` value means that
everybody it names has signed its payload.

Source: clauses DSSE-1 to DSSE-6 in ``spec/extensions/attestations.md``; DSSE v1 protocol and envelope.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec

from odf_protocol.canonical_json import Document, ShortText, Text, decode_canonical, encode_canonical, parse_exact
from odf_protocol.did import DidKey
from odf_protocol.errors import RejectedError
from odf_protocol.signatures import public_key_of, sign_bytes, verify_bytes

MAX_ENVELOPE_BYTES: Final = 2 * 1024 * 1024  # guess: some 4,000 re-executed blocks
_MAX_SIGNATURES: Final = 16  # guess: co-signers of one statement; more say it in envelopes of their own


class _Signature(Document, frozen=True, kw_only=True):
    keyid: Text
    sig: Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]


class _Envelope(Document, frozen=True, kw_only=True):
    payload: Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_ENVELOPE_BYTES)]
    payload_type: ShortText
    signatures: Annotated[tuple[_Signature, ...], msgspec.Meta(min_length=1, max_length=_MAX_SIGNATURES)]


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload and who signed it; made by ``decode_envelope`` only, so all signatures are good.

    Attributes:
        payload_type: Media type of the payload.
        payload: The signed bytes, as received.
        signers: Sorted by their text form.
        raw: The envelope as received.
    """

    payload_type: str
    payload: bytes = field(repr=False)
    signers: tuple[DidKey, ...]
    raw: bytes = field(repr=False)


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that a DSSE signature signs (PAE)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign_envelope(private_key: bytes, payload_type: str, payload: bytes) -> bytes:
    """Put a payload into an envelope with one signature."""
    return encode_canonical(
        _Envelope(payload=payload, payload_type=payload_type, signatures=(_sign(private_key, payload_type, payload),))
    )


def decode_envelope(raw: bytes, *, payload_type: str) -> Envelope:
    """Read an envelope and verify every signature in it.

    Args:
        raw: Untrusted.
        payload_type: The only type that is taken.

    Raises:
        MalformedError: Not an envelope in canonical JSON.
        RejectedError: Another type, a signature that is not good, or signers twice or out of order.
    """
    envelope = decode_canonical(raw, _Envelope, what="envelope", max_bytes=MAX_ENVELOPE_BYTES)
    if envelope.payload_type != payload_type:
        raise RejectedError("DSSE-2 payload-type", expected=payload_type, found=envelope.payload_type)
    keyids = [signature.keyid for signature in envelope.signatures]
    if keyids != sorted(set(keyids)):
        raise RejectedError("DSSE-4 signatures-sorted-by-key", expected=sorted(set(keyids)), found=keyids)
    signers = tuple(parse_exact(DidKey, keyid, "keyid") for keyid in keyids)
    message = pre_authentication(envelope.payload_type, envelope.payload)
    for signer, signature in zip(signers, envelope.signatures, strict=True):
        verify_bytes(signer.public_key, message, signature.sig)
    return Envelope(envelope.payload_type, envelope.payload, signers, bytes(raw))


def _sign(private_key: bytes, payload_type: str, payload: bytes) -> _Signature:
    keyid = str(DidKey(public_key_of(private_key)))
    return _Signature(keyid=keyid, sig=sign_bytes(private_key, pre_authentication(payload_type, payload)))
