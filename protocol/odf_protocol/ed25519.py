"""Ed25519 as OpenSSL has it; ``signatures`` says what is signed and which signatures are taken."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def load_key(private_key: bytes) -> Ed25519PrivateKey:
    """Make a key of its 32 bytes."""
    return Ed25519PrivateKey.from_private_bytes(private_key)


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether OpenSSL computes R of the signature from the other values: the check without the cofactor."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
