"""A fingerprint with a node's word for it.

Source: clause FP-3 in ``spec/plug-ins/fingerprints.md``; SIG-3, SIG-5 and SIG-6 in ``spec/extensions/signatures.md``.
"""

from dataclasses import dataclass

from odf_fingerprints.documents import MAX_BYTES, Fingerprint, decode_fingerprint
from odf_protocol.canonical_json import encode_canonical
from odf_protocol.did import DidKey
from odf_protocol.signatures import Purpose, SignedDocument, sign_document


@dataclass(frozen=True, slots=True)
class SignedFingerprint:
    """A fingerprint and who signed it.

    Attributes:
        fingerprint: What is stated.
        signer: A node.
    """

    fingerprint: Fingerprint
    signer: DidKey


def sign_fingerprint(seed: bytes, fingerprint: Fingerprint) -> bytes:
    """Sign a fingerprint with a node's key: dataset, block and all figures, for this purpose alone.

    Raises:
        ValueError: Readers would reject it.
    """
    return sign_document(seed, Purpose.FINGERPRINT, encode_canonical(fingerprint)).to_bytes()


def decode_signed(raw: bytes) -> SignedFingerprint:
    """Verify the signature of untrusted bytes, then read them.

    Raises:
        MalformedError: No signed fingerprint.
        RejectedError: The signature is not that of its key for these bytes.
    """
    signed = SignedDocument.decode(raw, Purpose.FINGERPRINT, max_payload_bytes=MAX_BYTES)
    return SignedFingerprint(decode_fingerprint(signed.payload), signed.signer)
