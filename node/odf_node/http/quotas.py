"""What one peer may ask for in a minute and take in a day (EX-56)."""

import time
from http import HTTPStatus
from math import ceil
from typing import Final

from aiohttp import web

from odf_node.http.access_log import sent_bytes_of
from odf_node.http.callers import get_caller
from odf_node.http.middleware import Handler
from odf_node.http.problems import ProblemError
from odf_node.http.served_node import LIVE
from odf_node.token_buckets import TokenBuckets

MINUTE_S: Final = 60.0
DAY_S: Final = 24 * 3600.0


class PeerQuotas:
    """Counts what peers ask for and take; follows the configuration, and begins anew where that changes."""

    def __init__(self) -> None:
        self._requests = TokenBuckets(0, MINUTE_S)
        self._bytes = TokenBuckets(0, DAY_S)

    @web.middleware
    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 429 to those who took too much, with the time after which they may come back."""
        limits = request.app[LIVE].configuration.limits
        self._requests = with_rate(self._requests, limits.peer_requests_per_minute / MINUTE_S, MINUTE_S)
        self._bytes = with_rate(self._bytes, limits.peer_bytes_per_day / DAY_S, DAY_S)
        peer, now_s = get_caller(request).peer, time.monotonic()
        for buckets, what in ((self._requests, "requests a minute"), (self._bytes, "bytes a day")):
            wait_s = buckets.find_wait_s(peer, now_s=now_s)
            if wait_s > 0:
                request.app[LIVE].metrics.turned_away.labels(reason=what.partition(" ")[0]).inc()
                raise ProblemError(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    "quota",
                    f"you have had your share of {what}",
                    headers={"Retry-After": str(ceil(wait_s))},
                )
        self._requests.take(peer, 1, now_s=now_s)
        answer: web.StreamResponse | None = None
        try:
            answer = await handler(request)
            return answer
        finally:
            # Also of an answer that was cut: what the kernel sent has been noted.
            self._bytes.take(peer, sent_bytes_of(request, answer or web.Response()), now_s=time.monotonic())


def with_rate(buckets: TokenBuckets, rate_per_s: float, window_s: float) -> TokenBuckets:
    """Return them, or new ones where the configuration has another rate now."""
    return buckets if buckets.rate_per_s == rate_per_s else TokenBuckets(rate_per_s, window_s)
