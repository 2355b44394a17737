"""What holds for every request: a name, a limit on how many run at once, and errors that say nothing of our insides."""

import logging
import socket
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from aiohttp import web

from odf_node.http.access_log import REQUEST_ID_HEADER, request_id_of, sent_bytes_of, share_of, write_line
from odf_node.http.problems import RETRY_AFTER_S, ProblemError, answer_error
from odf_node.http.served_node import LIVE
from odf_protocol.errors import OdfError
from odf_protocol.exchange.limits import STALL_S

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

DRAINING: Final = web.AppKey("draining", list[str])
"""Not empty from the moment the node was told to stop."""


class RequestGate:
    """Counts the requests that run and turns the rest away, instead of letting them wait for memory."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()

    @web.middleware
    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Run the handler, or answer 503 at once."""
        limits, share = request.app[LIVE].configuration.limits, share_of(request.remote)
        running = self._running.total()
        if running >= limits.requests or self._running[share] >= limits.address_requests:
            request.app[LIVE].metrics.turned_away.labels(reason="requests").inc()
            return answer_error(
                request,
                ProblemError(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "busy",
                    f"{min(running, limits.requests)} requests are running; try again",
                    headers={"Retry-After": RETRY_AFTER_S},
                ),
            )
        self._running[share] += 1
        try:
            return await handler(request)
        finally:
            self._running[share] -= 1
            if not self._running[share]:
                del self._running[share]


@web.middleware
async def count_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Count the request under its route, which is one of ours: what strangers write in paths makes no series."""
    metrics = request.app[LIVE].metrics
    resource = request.match_info.route.resource
    route = "none" if resource is None else resource.canonical
    began_s = time.monotonic()
    status = "cut"
    try:
        answer = await handler(request)
        status = str(answer.status)
        metrics.sent_bytes.inc(sent_bytes_of(request, answer))
        return answer
    finally:
        metrics.requests.labels(route=route, method=request.method if resource else "any", status=status).inc()
        metrics.note_request_seconds(route, time.monotonic() - began_s)


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn whatever a handler raises into an answer; the reason for an unexpected one is in the log alone."""
    _end_stalled_connections(request)
    try:
        answer = await handler(request)
    except (OdfError, ProblemError) as error:
        if isinstance(error, OdfError):
            write_line("error", request_id=request_id_of(request), error=type(error).__name__, text=str(error))
        answer = answer_error(request, error)
    except web.HTTPException as error:
        answer = _answer_http_exception(request, error)
    except web.RequestPayloadError:
        text = "expected a body as its headers announce it"
        answer = answer_error(request, ProblemError(HTTPStatus.BAD_REQUEST, "malformed", text))
    except TimeoutError:
        text = f"nothing came for {STALL_S:g} seconds"
        answer = answer_error(request, ProblemError(HTTPStatus.REQUEST_TIMEOUT, "stalled", text))
    except ConnectionError:
        raise  # the client is gone; aiohttp ends the connection
    except Exception as error:  # noqa: BLE001 - the edge of the request's task
        write_line(
            "fault",
            level=logging.ERROR,
            request_id=request_id_of(request),
            error=repr(error),
            trace="".join(traceback.format_exception(error)),
        )
        request.app[LIVE].metrics.faults.inc()
        text = "the node failed; its log has the reason"
        answer = answer_error(request, ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "fault", text))
    if not answer.prepared:
        answer.headers[REQUEST_ID_HEADER] = request_id_of(request)
        answer.headers["X-Content-Type-Options"] = "nosniff"
        if request.app[DRAINING]:
            answer.force_close()
    return answer


def _answer_http_exception(request: web.Request, error: web.HTTPException) -> web.StreamResponse:
    if error.status < HTTPStatus.BAD_REQUEST:
        return error
    status = HTTPStatus(error.status)
    headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    word = status.phrase.lower().replace(" ", "-")
    return answer_error(request, ProblemError(status, word, f"{status.phrase}: {request.method}", headers=headers))


def _end_stalled_connections(request: web.Request) -> None:
    # A client that stops reading would hold its request for ever: sendfile waits without a limit. The kernel ends
    # the connection when nothing was acknowledged for this long, a closed window included (tcp(7) TCP_USER_TIMEOUT).
    tcp = None if request.transport is None else request.transport.get_extra_info("socket")
    if tcp is not None and tcp.family in {socket.AF_INET, socket.AF_INET6}:
        with suppress(OSError):
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALL_S * 1000))
