"""Who asks over Flight, and what they may read: whoever shows a token, or nobody in particular.

Source: clauses FLIGHT-3 and FLIGHT-4 in ``spec/plug-ins/flight-sql.md``.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, Final

import pyarrow.flight as flight

from odf_node.http.callers import Caller, read_bearer, secret_hash_of
from odf_node.http.quotas import DAY_S, MINUTE_S, with_rate
from odf_node.http.served_node import Live
from odf_node.ports.clock import Clock
from odf_node.records.access import AccessToken, TokenState, read_grants
from odf_node.store import MetadataStore
from odf_node.token_buckets import TokenBuckets

MIDDLEWARE: Final = "caller"
"""Under this name the server finds what ``Gate`` found out of a call."""
ENGINE_HEADER: Final = "x-odf-engine"
"""Names the engine that answers, in its own SQL (FLIGHT-7)."""
_MAX_ENGINE_CHARACTERS: Final = 200  # guess: a name, and the digest of a build


class Call(flight.ServerMiddleware):  # type: ignore[misc]
    """One call: the token that was shown, the engine that was named, and its place among those that run."""

    def __init__(self, token: AccessToken | None, engine: str | None, method: str, gate: "Gate") -> None:
        self.token = token
        self.engine = engine
        self.share: str | None = None
        """Where it comes from; None: it is not counted there."""
        self._method = method
        self._gate = gate

    def call_completed(self, exception: Exception | None) -> None:
        """Give the place to others."""
        self._gate.end(self._method, self.share, is_answered=exception is None)


class Handshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """Lets the greeting of JDBC clients through, which had to pass the gate with its token as every call has."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Answer nothing: clients show the same token again."""

    def is_valid(self, token: bytes) -> bytes:  # noqa: ARG002 - the library's signature
        """Take any: none was given out."""
        return b""


class Gate(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets calls in, on the server's threads: so many at once, and with a token that opens something or with none."""

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        live: Live,
        find_share: Callable[[str], str | None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._live = live
        self._find_share = find_share
        self._requests = TokenBuckets(0, MINUTE_S)
        self._bytes = TokenBuckets(0, DAY_S)
        self._running = 0
        self._running_of: Counter[str] = Counter()
        self._lock = threading.Lock()

    def start_call(self, info: Any, headers: Mapping[str, Sequence[str | bytes]]) -> Call:
        """Find out what was shown, before anything is looked up for them.

        Raises:
            FlightUnauthenticatedError: A token that is unknown, expired or revoked.
            FlightServerError: Two engines are named, or bytes that are no name.
            FlightUnavailableError: As many calls run as may.
        """
        token = self._find_token(headers.get("authorization", ()))
        engine = _find_engine(headers.get(ENGINE_HEADER, ()))
        with self._lock:
            if self._running >= self._live.configuration.limits.requests:
                self._count_rejection("requests")
                raise flight.FlightUnavailableError("as many requests run as this node answers at once; come later")
            self._running += 1
        return Call(token, engine, info.method.name.lower(), self)

    def end(self, method: str, share: str | None, *, is_answered: bool) -> None:
        """Note that a call is over, and give its place among those of ``share`` to others."""
        with self._lock:
            self._running -= 1
            if share is not None:
                self._running_of[share] -= 1
                if not self._running_of[share]:
                    del self._running_of[share]
        status = "answered" if is_answered else "failed"
        self._live.metrics.requests.labels(route=f"flight/{method}", method="flight", status=status).inc()

    def admit(self, context: Any) -> Caller:
        """Return who makes a call, and count it as theirs.

        Raises:
            FlightUnavailableError: They have had their share for now, or as many calls run as may of one address.
        """
        call: Call = context.get_middleware(MIDDLEWARE)
        share = self._find_share(context.peer()) or "unknown"
        caller, limits, now_s = self._make_caller(call.token, share), self._live.configuration.limits, time.monotonic()
        with self._lock:
            # Only here: what begins a call is not told where it comes from.
            if self._running_of[share] >= limits.address_requests:
                self._count_rejection("requests")
                text = "as many requests of your address run as this node answers at once; come later"
                raise flight.FlightUnavailableError(text)
            self._requests = with_rate(self._requests, limits.peer_requests_per_minute / MINUTE_S, MINUTE_S)
            self._bytes = with_rate(self._bytes, limits.peer_bytes_per_day / DAY_S, DAY_S)
            for buckets, what in ((self._requests, "requests a minute"), (self._bytes, "bytes a day")):
                wait_s = buckets.find_wait_s(caller.peer, now_s=now_s)
                if wait_s > 0:
                    self._count_rejection(what.partition(" ")[0])
                    text = f"you have had your share of {what}; come back in {ceil(wait_s)} s"
                    raise flight.FlightUnavailableError(text)
            self._requests.take(caller.peer, 1, now_s=now_s)
            self._running_of[share] += 1
            call.share = share
        return caller

    def note_sent(self, caller: Caller, size_bytes: int) -> None:
        """Count bytes of rows as what somebody took today."""
        with self._lock:
            self._bytes.take(caller.peer, size_bytes, now_s=time.monotonic())

    def _count_rejection(self, reason: str) -> None:
        self._live.metrics.turned_away.labels(reason=reason).inc()

    def _make_caller(self, token: AccessToken | None, share: str) -> Caller:
        anonymous = self._live.configuration.access.anonymous
        if token is not None:
            return Caller(f"token:{token.id}", token, read_grants(token.scopes, anonymous=anonymous))
        return Caller(f"address:{share}", None, read_grants((), anonymous=anonymous))

    def _find_token(self, shown: Sequence[str | bytes]) -> AccessToken | None:
        if not shown:
            return None
        secret = read_bearer(shown[0]) if len(shown) == 1 and isinstance(shown[0], str) else None
        token = None if secret is None else self._store.find_token(secret_hash_of(secret))
        if token is None or token.state_at(self._clock.now()) is not TokenState.VALID:
            # Other than over HTTP, whoever shows one meant this node: silence would look like missing datasets.
            raise flight.FlightUnauthenticatedError("the token is unknown, expired or revoked")
        return token


def _find_engine(named: Sequence[str | bytes]) -> str | None:
    if not named:
        return None
    (name, *others) = named
    if others or not isinstance(name, str) or not 0 < len(name) <= _MAX_ENGINE_CHARACTERS:
        raise flight.FlightServerError(f"{ENGINE_HEADER}: expected the name of one engine")
    return name
