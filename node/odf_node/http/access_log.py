"""What was asked and how it was answered: one JSON object per line on standard error."""

import json
import logging
import secrets
import sys
from datetime import UTC, datetime
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, Final, TextIO

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

REQUEST_ID_HEADER: Final = "X-Request-Id"
_REQUEST_ID: Final = web.RequestKey("request_id", str)


def request_id_of(request: web.BaseRequest) -> str:
    """Return the request's name; ours, never one that the client chose, so that logs cannot be confused."""
    if _REQUEST_ID not in request:
        request[_REQUEST_ID] = secrets.token_hex(8)
    return request[_REQUEST_ID]


_NETWORK_BITS: Final = 64
"""Of IPv6, whoever has one address has as many as these leave. Source: RFC 4291 section 2.5.1."""


def share_of(remote: str | None) -> str:
    """Return what shares the limits of an address: an IPv4 address, or a /64 of IPv6; headers are never read for it."""
    try:
        ip = ip_address((remote or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped or IPv6Network((ip, _NETWORK_BITS), strict=False))
    return str(ip)


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
