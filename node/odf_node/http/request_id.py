"""A name for each request, so that an answer and a line in the log can be brought together."""

import secrets
from typing import Final

from aiohttp import web

HEADER: Final = "X-Request-Id"
_KEY: Final = web.RequestKey("request_id", str)


def request_id_of(request: web.BaseRequest) -> str:
    """Return the request's name; ours, never one that the client chose, so that logs cannot be confused."""
    if _KEY not in request:
        request[_KEY] = secrets.token_hex(8)
    return request[_KEY]
