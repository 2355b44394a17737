"""What somebody must show who wants to change something here (EX-17)."""

from http import HTTPStatus

from aiohttp import web

from odf_node.http.callers import get_caller, secret_hash_of, unauthorized
from odf_node.http.problems import ProblemError
from odf_node.ports.access import PUSH_SCOPE, AccessToken
from odf_protocol.did import DatasetId

__all__ = ["get_token", "require_scope", "require_some_push", "secret_hash_of"]


async def get_token(request: web.Request) -> AccessToken:
    """Return the token that came with the request, or what is granted to the node that signed it.

    Raises:
        ProblemError: 401: there is none.
    """
    caller = get_caller(request)
    if caller.token is None:
        raise unauthorized(caller.lack)
    return caller.token


def require_scope(token: AccessToken, dataset_id: DatasetId) -> None:
    """Check that the token allows pushes of the dataset.

    Raises:
        ProblemError: 403.
    """
    if not {PUSH_SCOPE, f"{PUSH_SCOPE}:{dataset_id}"}.intersection(token.scopes):
        raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", f"the token does not allow pushes of {dataset_id}")


def require_some_push(token: AccessToken) -> None:
    """Check that the token allows pushes at all, where whose push it is comes later (SMART-10).

    Raises:
        ProblemError: 403.
    """
    if not any(scope.partition(":")[0] == PUSH_SCOPE for scope in token.scopes):
        raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", "the token does not allow pushes")
