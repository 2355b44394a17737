"""Tokens by which others prove that they may push."""

from dataclasses import dataclass

from odf_protocol.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """A token without its secret.

    ``secret_hash`` is 32 bytes, SHA3-256 of the secret (a secret has enough entropy that no slow hash is needed).
    ``scopes`` are words of the service that checks them, as ``push`` or ``push:did:odf:...``. Times None: never.
    """

    id: str
    secret_hash: bytes
    label: str
    scopes: tuple[str, ...]
    created_at: Timestamp
    expires_at: Timestamp | None = None
    revoked_at: Timestamp | None = None
