"""Tokens of those who push: looked up by the hash of what was sent, judged by our clock (EX-17)."""

import asyncio
import hashlib
from http import HTTPStatus
from typing import Final

from aiohttp import web

from odf_node.http.problems import ProblemError
from odf_node.http.served_node import NODE
from odf_node.ports.access import AccessToken
from odf_protocol.did import DatasetId

PUSH_SCOPE: Final = "push"
"""Allows pushes of any dataset; ``push:did:odf:...`` allows those of one."""

_MAX_TOKEN_CHARACTERS: Final = 512  # guess: ours have below 100


def secret_hash_of(token: str) -> bytes:
    """Return what is kept of a token: SHA3-256 of its whole text in UTF-8."""
    return hashlib.sha3_256(token.encode()).digest()


async def get_token(request: web.Request) -> AccessToken:
    """Return the token that came with the request.

    Raises:
        ProblemError: 401: none, an unknown, expired or revoked one; the answers are the same.
    """
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not 0 < len(secret) <= _MAX_TOKEN_CHARACTERS:
        raise _unauthorized("send 'Authorization: Bearer TOKEN'; whoever runs this node makes tokens")
    node = request.app[NODE]
    token = await asyncio.to_thread(node.store.find_token, secret_hash_of(secret))
    now = node.clock.now()
    if token is None or token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now):
        raise _unauthorized("the token is unknown, expired or revoked")
    return token


async def may_push(request: web.Request, dataset_id: DatasetId) -> bool:
    """Say whether the request came with a token that allows pushes of the dataset: who writes it may read it."""
    if "Authorization" not in request.headers:
        return False
    try:
        require_scope(await get_token(request), dataset_id)
    except ProblemError:
        return False
    return True


def require_scope(token: AccessToken, dataset_id: DatasetId) -> None:
    """Check that the token allows pushes of the dataset.

    Raises:
        ProblemError: 403.
    """
    if not {PUSH_SCOPE, f"{PUSH_SCOPE}:{dataset_id}"}.intersection(token.scopes):
        raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", f"the token does not allow pushes of {dataset_id}")


def _unauthorized(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
