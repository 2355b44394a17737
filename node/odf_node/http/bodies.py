"""Bodies of requests: whole, in plain, of the kind that a route takes, of bounded size and time (EX-11, EX-72)."""

import asyncio
from http import HTTPStatus

from aiohttp import web

from odf_node.http.middleware import Handler
from odf_node.http.problems import ProblemError
from odf_protocol.exchange.limits import MESSAGE_S, STALL_S, message_limit_s
from odf_protocol.exchange.messages import JSON_MEDIA_TYPE


@web.middleware
async def reject_encoded_bodies(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Take bodies as they are: what would be unpacked could be anything, of any size.

    Raises:
        ProblemError: 415, with what is taken (RFC 9110 section 15.5.16).
    """
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "encoded",
            "expected a body without Content-Encoding, found one",
            headers={"Accept-Encoding": "identity"},
        )
    return await handler(request)


def require_json(request: web.Request) -> None:
    """Take JSON only where it is called so, which no page of another origin can do unasked (EX-71).

    Raises:
        ProblemError: 415.
    """
    if request.content_type != JSON_MEDIA_TYPE:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "media-type",
            f"expected Content-Type {JSON_MEDIA_TYPE}",
            headers={"Accept-Post": JSON_MEDIA_TYPE},
        )


async def read_body(request: web.Request, limit_bytes: int, *, message_s: float = MESSAGE_S) -> bytes:
    """Read a body of at most ``limit_bytes``.

    Raises:
        ProblemError: It is longer.
        TimeoutError: It stalls, or takes too long.
    """
    if (request.content_length or 0) > limit_bytes:
        raise too_large(limit_bytes)
    parts: list[bytes] = []
    size_bytes = 0
    async with asyncio.timeout(message_limit_s(limit_bytes, message_s)):
        while True:
            # A body that goes wrong in the middle ends like one that stalls: the HTTP library says nothing of it.
            async with asyncio.timeout(STALL_S):
                data = await request.content.readany()
            if not data:
                break
            size_bytes += len(data)
            if size_bytes > limit_bytes:
                raise too_large(limit_bytes)
            parts.append(data)
    return b"".join(parts)


def too_large(limit_bytes: int) -> ProblemError:
    """Make the answer to a body that is longer than ``limit_bytes``, or what is left of them."""
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"expected at most {limit_bytes} bytes more")
