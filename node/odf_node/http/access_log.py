"""What was asked and how it was answered: one JSON object per line on standard error."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

from odf_node.http.request_id import request_id_of

LOGGER: Final = logging.getLogger("odf_node.http")

_SENT: Final = web.RequestKey("sent_bytes", int)

_SHOWN_CHARACTERS: Final = 400  # guess: our longest path, a checkpoint of a dataset named by its identity, has 250


class JsonAccessLogger(AbstractAccessLogger):
    """Writes a line when the last byte of an answer is out. Headers are left out: they carry tokens."""

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        """See ``AbstractAccessLogger``; ``time`` is in seconds."""
        write_line(
            "request",
            request_id=request_id_of(request),
            remote=request.remote,
            method=request.method,
            path=request.path[:_SHOWN_CHARACTERS],
            status=response.status,
            size_bytes=sent_bytes_of(request, response),
            duration_ms=round(time * 1000, 1),
        )


def note_sent(request: web.BaseRequest, size_bytes: int) -> None:
    """Count bytes of a body that the kernel sends past the HTTP library."""
    request[_SENT] = request.get(_SENT, 0) + size_bytes


def sent_bytes_of(request: web.BaseRequest, response: web.StreamResponse) -> int:
    """Return how many bytes of the body were sent."""
    if _SENT in request:
        return request[_SENT]
    # The library's own count has the headers in it.
    body = response.body if isinstance(response, web.Response) else None
    return len(body) if isinstance(body, bytes) and request.method != "HEAD" else 0


def write_line(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log one event with its facts."""
    LOGGER.log(
        level, json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event} | fields)
    )


def log_to(stream: TextIO | None = None) -> logging.Handler:
    """Send the lines to ``stream`` (None: standard error) and nowhere else; remove the result when done."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    return handler
