"""Answers that several routes give: messages, immutable bytes, objects with ranges."""

from http import HTTPStatus
from typing import BinaryIO, Final

import msgspec
from aiohttp import web

from odf_node.http.access_log import REQUEST_ID_HEADER, request_id_of
from odf_node.http.callers import get_caller
from odf_node.http.problems import ProblemError
from odf_node.http.sending import send_file
from odf_protocol.exchange.messages import JSON_MEDIA_TYPE, encode_message
from odf_protocol.exchange.object_parts import UnsatisfiableRangeError, find_range, matches_etag

OCTETS: Final = "application/octet-stream"

IMMUTABLE: Final = "public, max-age=31536000, immutable"
"""What a hash names never changes (EX-5). Source: RFC 8246; a year is what RFC 9111 readers take for ever."""
CHANGING: Final = "no-cache"
"""May be kept, and is asked for again each time."""


def answer_message(message: msgspec.Struct, *, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    """Send a JSON message that is not to be kept."""
    answer = web.Response(body=encode_message(message), status=status, content_type=JSON_MEDIA_TYPE)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def answer_bytes(
    request: web.Request, body: bytes, *, etag: str, cache: str, content_type: str = OCTETS
) -> web.Response:
    """Send bytes that ``etag`` names, or say that the client has them (304)."""
    unchanged = matches_etag(request.headers.get("If-None-Match"), etag)
    answer = (
        web.Response(status=HTTPStatus.NOT_MODIFIED)
        if unchanged
        else web.Response(body=body, content_type=content_type)
    )
    answer.headers["ETag"] = f'"{etag}"'
    answer.headers["Cache-Control"] = _for_caches(request, cache)
    return answer


async def answer_object(request: web.Request, file: BinaryIO, *, size_bytes: int, etag: str) -> web.StreamResponse:
    """Send an object or the part of it that is asked for, by the kernel where it can (EX-6).

    ``file`` is closed. The rate of a slow client is bounded: the connection ends when it falls below the least one.
    """
    with file:
        cache = _for_caches(request, IMMUTABLE)
        answer = web.StreamResponse(headers={"ETag": f'"{etag}"', "Cache-Control": cache, "Accept-Ranges": "bytes"})
        answer.content_type = OCTETS
        answer.headers[REQUEST_ID_HEADER] = request_id_of(request)
        if matches_etag(request.headers.get("If-None-Match"), etag):
            answer.set_status(HTTPStatus.NOT_MODIFIED)
            return answer
        start, count = _choose_part(request, answer, size_bytes, etag)
        answer.content_length = count
        await answer.prepare(request)
        if count and request.method != "HEAD":
            await send_file(request, answer, file, start, count)
        await answer.write_eof()
        return answer


def _for_caches(request: web.Request, cache: str) -> str:
    """Keep what a token is given out of caches that others are served from (EX-86; RFC 9111, 5.2.2.7)."""
    if get_caller(request).token is None:
        return cache
    return f"private, {cache.removeprefix('public, ')}"


def _choose_part(request: web.Request, answer: web.StreamResponse, size_bytes: int, etag: str) -> tuple[int, int]:
    condition = request.headers.get("If-Range")
    if request.method != "GET" or (condition is not None and not matches_etag(condition, etag)):
        return 0, size_bytes
    try:
        part = find_range(request.headers.get("Range"), size_bytes)
    except UnsatisfiableRangeError as error:
        raise ProblemError(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            "range",
            str(error),
            headers={"Content-Range": f"bytes */{size_bytes}"},
        ) from error
    if part is None:
        return 0, size_bytes
    answer.set_status(HTTPStatus.PARTIAL_CONTENT)
    answer.headers["Content-Range"] = part.content_range
    return part.start, part.end - part.start
