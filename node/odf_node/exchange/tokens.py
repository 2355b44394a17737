"""Tokens by which others prove that they may push or read; of their secrets the hash alone is kept (HOME-16)."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha3_256
from typing import Final

from odf_node.datasets.naming import get_dataset
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.home import Home
from odf_node.records.access import INSPECT_SCOPE, PUSH_SCOPE, READ_SCOPE, REPLACE_SCOPE, AccessToken
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.timestamp import Timestamp

SECRET_BYTES: Final = 32  # as much as the hash that is kept of it
PREFIX: Final = "odfn_"
"""Lets scanners for leaked secrets recognise a token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The use case behind ``odf-node token``."""

    home: Home

    def create(
        self,
        label: str,
        *,
        datasets: Sequence[str],
        expires_at: Timestamp | None,
        reads: Sequence[str] = (),
        reads_all: bool = False,
        node: DidKey | None = None,
        may_replace: bool = False,
        inspects: bool = False,
    ) -> tuple[AccessToken, str]:
        """Make a token; return it with its secret, which is kept nowhere.

        Args:
            label: Who will use it.
            datasets: Names or identities that may be pushed with it; empty, where nothing is said about reading: any
                dataset that is not this node's own.
            expires_at: When it ends, None: never.
            reads: Names or identities that may be read with it, also where they are not published.
            reads_all: Everything may be read.
            node: Whose signed requests stand for the token; the secret is then empty. None: whoever has the secret.
            inspects: Everything that the operator sees may be looked at on web pages (PAGES-5).
            may_replace: Forced pushes may replace histories that nobody signed (ACCEPT-10).

        Raises:
            UsageError: It would never be valid, or the node has a token already.
        """
        now = self.home.clock.now()
        if expires_at is not None and expires_at <= now:
            raise UsageError(f"a token that ends at {expires_at} would never be valid: it is {now}")
        scopes = tuple(f"{PUSH_SCOPE}:{self._identity(dataset)}" for dataset in datasets)
        scopes += tuple(f"{READ_SCOPE}:{self._identity(dataset)}" for dataset in reads)
        scopes += (READ_SCOPE,) if reads_all else ()
        scopes += (INSPECT_SCOPE,) if inspects else ()
        scopes = scopes or (PUSH_SCOPE,)
        scopes += (REPLACE_SCOPE,) if may_replace else ()
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES) if node is None else ""
        # The form of EX-51, which no secret can have.
        kept = secret.encode() if node is None else b"\0node\0" + node.to_bytes()
        secret_hash = sha3_256(kept).digest()
        known = None if node is None else self.home.store.find_token(secret_hash)
        if known is not None and known.revoked_at is None:
            raise UsageError(f"{node} has the token {known.id} already; 'odf-node token revoke {known.id}' ends it")
        token = AccessToken(
            id=secrets.token_hex(4),
            secret_hash=secret_hash,
            label=label,
            scopes=scopes,
            created_at=now,
            expires_at=expires_at,
        )
        self.home.store.put_token(token)
        return token, secret

    def list_tokens(self) -> tuple[AccessToken, ...]:
        """List all tokens, oldest first."""
        return self.home.store.list_tokens()

    def revoke(self, token_id: str) -> None:
        """End a token.

        Raises:
            UnknownDatasetError: There is no such token.
        """
        if not self.home.store.revoke_token(token_id, self.home.clock.now()):
            raise UnknownDatasetError(f"there is no token {token_id}; 'odf-node token list' shows them")

    def _identity(self, dataset: str) -> DatasetId:
        return DatasetId.parse(dataset) if dataset.startswith("did:") else get_dataset(self.home.store, dataset).id
