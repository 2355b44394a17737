"""Errors as answers: one table from our tree to HTTP, in the form of RFC 9457 (EX-9)."""

from http import HTTPStatus
from typing import Any, Final

import msgspec
from aiohttp import web

from odf_node.errors import FrozenDatasetError
from odf_node.http.access_log import request_id_of
from odf_node.records.errors import HomeFullError, TooManyWaitingError
from odf_protocol.errors import (
    CorruptError,
    MalformedError,
    NotFoundError,
    OdfError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from odf_protocol.exchange.limits import MAX_PROBLEM_TEXT_CHARACTERS
from odf_protocol.exchange.messages import PROBLEM_MEDIA_TYPE, Problem, encode_message

_STATUS: Final[dict[type[OdfError], tuple[HTTPStatus, str]]] = {
    FrozenDatasetError: (HTTPStatus.CONFLICT, "frozen"),
    TooManyWaitingError: (HTTPStatus.SERVICE_UNAVAILABLE, "busy"),
    HomeFullError: (HTTPStatus.INSUFFICIENT_STORAGE, "no-room"),
    NotFoundError: (HTTPStatus.NOT_FOUND, "not-found"),
    MalformedError: (HTTPStatus.BAD_REQUEST, "malformed"),
    UnsupportedError: (HTTPStatus.UNPROCESSABLE_ENTITY, "unsupported"),
    RejectedError: (HTTPStatus.UNPROCESSABLE_ENTITY, "refused"),
    UnavailableError: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
    CorruptError: (HTTPStatus.INTERNAL_SERVER_ERROR, "broken"),
    OdfError: (HTTPStatus.INTERNAL_SERVER_ERROR, "failed"),
}
"""The first class that an error is an instance of decides."""

_OURS: Final = {
    "no-room": "this node has no room for it",
    "unavailable": "this node cannot do that now; try again later",
    "broken": "this node's storage needs its operator",
    "failed": "this node could not do it: its engine failed; its log has the reason",
}
"""Said instead of the error's own text, which names places on our disk."""

TYPE_PREFIX: Final = "urn:odf-node:problem:"
RETRY_AFTER_S: Final = "2"


class ProblemError(Exception):
    """An answer that is no success, raised by a route; not part of the error tree, as nothing outside HTTP means it."""

    def __init__(self, status: HTTPStatus, word: str, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.word = word
        self.detail = detail
        self.headers: dict[str, str] = members.pop("headers", {})
        self.members = members


def problem_of(error: OdfError) -> Problem:
    """Describe an error of the tree; nothing about our disk gets out."""
    status, word = next(entry for kind, entry in _STATUS.items() if isinstance(error, kind))
    number = getattr(error, "sequence_number", None)
    return Problem(
        type=TYPE_PREFIX + word,
        title=status.phrase,
        status=status.value,
        detail=_cut(_OURS.get(word) or str(error)),
        rule=_cut(str(getattr(error, "rule", ""))),
        sequence_number=number if isinstance(number, int) else None,
        report=getattr(error, "report", None),
    )


def answer_error(request: web.BaseRequest, error: OdfError | ProblemError) -> web.Response:
    """Make the answer to a request that ended so."""
    if isinstance(error, ProblemError):
        problem = Problem(
            type=TYPE_PREFIX + error.word,
            title=error.status.phrase,
            status=error.status.value,
            detail=_cut(error.detail),
            **error.members,
        )
        return answer_problem(request, problem, headers=error.headers)
    headers = {"Retry-After": RETRY_AFTER_S} if isinstance(error, TooManyWaitingError) else None
    return answer_problem(request, problem_of(error), headers=headers)


def answer_problem(
    request: web.BaseRequest, problem: Problem, *, headers: dict[str, str] | None = None
) -> web.Response:
    """Send a problem, naming the request, so that its line in our log can be found."""
    named = msgspec.structs.replace(problem, instance=f"urn:odf-node:request:{request_id_of(request)}")
    answer = web.Response(body=encode_message(named), status=problem.status, content_type=PROBLEM_MEDIA_TYPE)
    answer.headers.update(headers or {})
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _cut(text: str) -> str:
    return text[:MAX_PROBLEM_TEXT_CHARACTERS]
