"""How others prove who they are, and what they may read; and how this node's user does so elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from odf_protocol.did import DatasetId
from odf_protocol.timestamp import Timestamp

READ_SCOPE: Final = "read"
"""Allows reading every dataset; ``read:did:odf:...`` allows one."""
PUSH_SCOPE: Final = "push"
"""Allows pushes of any dataset; ``push:did:odf:...`` allows those of one."""
REPLACE_SCOPE: Final = "replace"
"""Lets forced pushes replace the history of a dataset that the other scopes allow to push (ACCEPT-10)."""

INSPECT_SCOPE: Final = "inspect"
"""Allows looking at everything that the operator sees: datasets, rejections, quarantine, peers (PAGES-5)."""


class Pages(StrEnum):
    """Who is shown web pages."""

    OFF = "off"
    TOKEN = "token"  # noqa: S105 - a word
    EVERYONE = "everyone"


class TokenState(StrEnum):
    """Whether a token opens anything; only a valid one does."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """What somebody may do who shows a secret, or signs with a node's key.

    ``secret_hash`` is 32 bytes, SHA3-256 of the secret (a secret has enough entropy that no slow hash is needed), or of
    what stands for the node (EX-51). ``scopes`` are words of the service that checks them, as ``push`` or
    ``push:did:odf:...``. Times None: never.
    """

    id: str
    secret_hash: bytes
    label: str
    scopes: tuple[str, ...]
    created_at: Timestamp
    expires_at: Timestamp | None = None
    revoked_at: Timestamp | None = None

    def state_at(self, now: Timestamp) -> TokenState:
        """Say whether it opens anything at a time of the clock (DAEMON-15)."""
        if self.revoked_at is not None:
            return TokenState.REVOKED
        return TokenState.EXPIRED if self.expires_at is not None and self.expires_at <= now else TokenState.VALID


@dataclass(frozen=True, slots=True)
class ReadGrants:
    """Which datasets somebody may read: the published ones, all, or some."""

    published: bool
    everything: bool = False
    datasets: frozenset[DatasetId] = frozenset()

    def allow(self, dataset_id: DatasetId, *, published: bool) -> bool:
        """Say whether a dataset may be read."""
        return self.everything or (published and self.published) or dataset_id in self.datasets


READS_EVERYTHING: Final = ReadGrants(published=True, everything=True)
"""What the operator may read."""


def read_grants(scopes: tuple[str, ...], *, anonymous: bool) -> ReadGrants:
    """Give what scopes allow to read: who writes a dataset may read it.

    Args:
        scopes: Of a token; empty for those who show none.
        anonymous: Whether published datasets are for everybody. They are for every token in any case.
    """
    return ReadGrants(
        published=anonymous or bool(scopes),
        everything=bool({READ_SCOPE, PUSH_SCOPE, INSPECT_SCOPE}.intersection(scopes)),
        datasets=frozenset(
            DatasetId.parse(scope.partition(":")[2])
            for scope in scopes
            if scope.startswith((f"{READ_SCOPE}:", f"{PUSH_SCOPE}:"))
        ),
    )


class LoginStore(Protocol):
    """Tokens by the origin of a server (``https://host:port``); a token goes to its origin and nowhere else.

    Every method may raise HomeCorruptError, UnsafeKeyFileError and what writing to the home may raise.
    """

    def find(self, origin: str) -> str | None:
        """Return the token for a server, or None."""
        ...

    def read(self) -> Mapping[str, str]:
        """Return all tokens by origin."""
        ...

    def put(self, origin: str, token: str) -> None:
        """Keep a token instead of the one kept before."""
        ...

    def drop(self, origin: str) -> bool:
        """Forget the token of a server; say whether there was one."""
        ...
