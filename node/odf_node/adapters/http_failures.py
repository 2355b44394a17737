"""What can go wrong on the way to a peer, in the words of our errors: one table (EX-13)."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import aiohttp
import msgspec

from odf_node.ports.peer_errors import (
    PeerForbidsError,
    PeerNotFoundError,
    PeerPreparesError,
    PeerUnavailableError,
    PushRejectedError,
)
from odf_protocol.errors import MalformedError, OdfError, UnsupportedError
from odf_protocol.exchange.messages import OBJECT_ABSENT, PROBLEM_MEDIA_TYPE, Problem, decode_message

_UNAVAILABLE: Final[tuple[tuple[type[BaseException], str, str], ...]] = (
    (aiohttp.ClientConnectorDNSError, "no such host is known", "check the address"),
    (
        aiohttp.ClientConnectorCertificateError,
        "its certificate is not valid",
        "check the address, or ask its operator",
    ),
    (aiohttp.ClientSSLError, "no secure connection comes about", "check whether the address is https or http"),
    (ssl.SSLError, "no secure connection comes about", "check whether the address is https or http"),
    (aiohttp.ClientConnectorError, "no server answers there", "check the address, and that the node is running"),
    (aiohttp.ServerTimeoutError, "it stopped answering", "try again; what arrived is kept"),
    (aiohttp.ServerDisconnectedError, "the connection was cut", "try again; what arrived is kept"),
    (aiohttp.ClientOSError, "the connection was cut", "try again; what arrived is kept"),
    (aiohttp.ClientPayloadError, "the connection was cut", "try again; what arrived is kept"),
    (aiohttp.ClientConnectionError, "the connection was cut", "try again; what arrived is kept"),
    (asyncio.IncompleteReadError, "the connection was cut", "try again; what arrived is kept"),
    (ConnectionError, "the connection was cut", "try again; what arrived is kept"),
    (TimeoutError, "it stopped answering", "try again; what arrived is kept"),
)
"""The first class that an error is an instance of decides: reason and advice."""

_MALFORMED: Final = (aiohttp.InvalidURL, aiohttp.ClientResponseError, aiohttp.http_exceptions.HttpProcessingError)


@contextmanager
def mapped_failures(url: str) -> Iterator[None]:
    """Raise PeerUnavailableError or MalformedError for what the HTTP client raises; ours pass as they are."""
    try:
        yield
    except OdfError:
        raise
    except _MALFORMED as error:
        raise MalformedError("answer", where=url, expected="HTTP/1.1", found=str(error)) from error
    except Exception as error:
        for kind, reason, advice in _UNAVAILABLE:
            if isinstance(error, kind):
                raise PeerUnavailableError(url, reason, advice) from error
        raise


def error_of_status(url: str, status: int, what: str, body: bytes = b"", content_type: str = "") -> OdfError:
    """Make the error for an answer that is no success.

    Args:
        url: What was asked.
        status: The answer's status.
        what: What was wanted, for people.
        body: The beginning of the answer, read when it is a problem of ours.
        content_type: Of the body.
    """
    problem = _find_problem(body, content_type)
    detail = "" if problem is None else problem.detail
    is_absent = problem is not None and problem.type.endswith(f":{OBJECT_ABSENT}")
    match status:
        case HTTPStatus.SERVICE_UNAVAILABLE if is_absent:
            return PeerPreparesError(url)
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return PeerForbidsError(url, status, detail)
        case HTTPStatus.NOT_FOUND | HTTPStatus.GONE:
            if is_absent:
                return PeerNotFoundError(url, f"{what}: it holds the dataset without this file, which others may have")
            return PeerNotFoundError(url, what)
        case HTTPStatus.REQUEST_TIMEOUT | HTTPStatus.TOO_MANY_REQUESTS:
            return PeerUnavailableError(url, f"it answers {status}: {detail or 'too many requests'}")
        case HTTPStatus.INSUFFICIENT_STORAGE:
            # Trying again at once would send the blocks again and change nothing.
            return PushRejectedError(url, "EX-57 room", detail)
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return PeerUnavailableError(url, f"it fails with {status}{f': {detail}' if detail else ''}")
        case HTTPStatus.UNPROCESSABLE_ENTITY | HTTPStatus.CONFLICT if problem is not None:
            return PushRejectedError(
                url, problem.rule, detail, sequence_number=problem.sequence_number, report=problem.report
            )
        case _ if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            return UnsupportedError(f"redirect from {url}", found=status, supported="redirects to the same host")
    return MalformedError("answer", where=url, expected=f"a {what}", found=f"status {status} {detail}".rstrip())


def _find_problem(body: bytes, content_type: str) -> Problem | None:
    if content_type != PROBLEM_MEDIA_TYPE:
        return None
    try:
        problem = decode_message(body, Problem)
    except MalformedError:
        return None
    # On one line: what a peer writes must not look like lines of ours.
    return msgspec.structs.replace(
        problem, detail=" ".join(problem.detail.split()), rule=" ".join(problem.rule.split())
    )
