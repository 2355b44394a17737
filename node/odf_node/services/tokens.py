"""Tokens by which others prove that they may push."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha3_256
from typing import Final

from odf_node.errors import UnknownDatasetError
from odf_node.ports import AccessToken, Clock, MetadataStore
from odf_node.services.naming import get_dataset
from odf_protocol.did import DatasetId
from odf_protocol.timestamp import Timestamp

SECRET_BYTES: Final = 32  # as much as the hash that is kept of it
PREFIX: Final = "odfn_"
"""Lets scanners for leaked secrets recognise a token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The use case behind ``odf-node token``."""

    store: MetadataStore
    clock: Clock

    def create(self, label: str, *, datasets: Sequence[str], expires_at: Timestamp | None) -> tuple[AccessToken, str]:
        """Make a token; return it with its secret, which is kept nowhere.

        Args:
            label: Who will use it.
            datasets: Names or identities it is good for; empty: any dataset that is not this node's own.
            expires_at: When it ends, None: never.
        """
        scopes = tuple(f"push:{self._identity(dataset)}" for dataset in datasets) or ("push",)
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        token = AccessToken(
            id=secrets.token_hex(4),
            secret_hash=sha3_256(secret.encode()).digest(),
            label=label,
            scopes=scopes,
            created_at=self.clock.now(),
            expires_at=expires_at,
        )
        self.store.put_token(token)
        return token, secret

    def list_tokens(self) -> tuple[AccessToken, ...]:
        """List all tokens, oldest first."""
        return self.store.list_tokens()

    def revoke(self, token_id: str) -> None:
        """End a token.

        Raises:
            UnknownDatasetError: There is no such token.
        """
        if not self.store.revoke_token(token_id, self.clock.now()):
            raise UnknownDatasetError(f"there is no token {token_id}; 'odf-node token list' shows them")

    def _identity(self, dataset: str) -> DatasetId:
        return DatasetId.parse(dataset) if dataset.startswith("did:") else get_dataset(self.store, dataset).id
