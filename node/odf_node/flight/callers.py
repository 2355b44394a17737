"""Who asks over Flight, and what they may read: whoever shows a token, or nobody in particular.

Source: clauses FLIGHT-3 and FLIGHT-4 in ``spec/extensions/flight-sql.md``.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow.flight as flight

from odf_node.http.callers import Caller, read_bearer, secret_hash_of
from odf_node.http.live import Live
from odf_node.http.remote_addresses import share_of
from odf_node.ports.access import AccessToken, TokenState, TokenStore, read_grants
from odf_node.ports.clock import Clock

MIDDLEWARE: Final = "caller"
"""Under this name the server finds what ``Gate`` found out of a call."""


class Call(flight.ServerMiddleware):  # type: ignore[misc]
    """One call: the token that was shown, and its place among those that run."""

    def __init__(self, token: AccessToken | None, gate: "Gate") -> None:
        self.token = token
        self._gate = gate

    def call_completed(self, exception: Exception | None) -> None:  # noqa: ARG002 - the library's signature
        """Give the place to others."""
        self._gate.end()


class Handshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """Lets the greeting of JDBC clients through, which had to pass the gate with its token as every call has."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Answer nothing: clients show the same token again."""

    def is_valid(self, token: bytes) -> bytes:  # noqa: ARG002 - the library's signature
        """Take any: none was given out."""
        return b""


class Gate(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets calls in, on the server's threads: so many at once, and with a token that opens something or with none."""

    def __init__(self, tokens: TokenStore, clock: Clock, live: Live) -> None:
        self._tokens = tokens
        self._clock = clock
        self._live = live
        self._running = 0
        self._lock = threading.Lock()

    def start_call(self, info: Any, headers: Mapping[str, Sequence[str | bytes]]) -> Call:  # noqa: ARG002
        """Find out what was shown, before anything is looked up for them.

        Raises:
            FlightUnauthenticatedError: A token that is unknown, expired or revoked.
            FlightUnavailableError: As many calls run as may.
        """
        token = self._find_token(headers.get("authorization", ()))
        with self._lock:
            if self._running >= self._live.configuration.limits.requests:
                raise flight.FlightUnavailableError("as many requests run as this node answers at once; come later")
            self._running += 1
        return Call(token, self)

    def end(self) -> None:
        """Note that a call is over."""
        with self._lock:
            self._running -= 1

    def get_caller(self, context: Any) -> Caller:
        """Return who makes a call."""
        token = context.get_middleware(MIDDLEWARE).token
        anonymous = self._live.configuration.access.anonymous
        if token is not None:
            return Caller(f"token:{token.id}", token, read_grants(token.scopes, anonymous=anonymous))
        return Caller(f"address:{share_of(_address_of(context.peer()))}", None, read_grants((), anonymous=anonymous))

    def _find_token(self, shown: Sequence[str | bytes]) -> AccessToken | None:
        if not shown:
            return None
        secret = read_bearer(shown[0]) if len(shown) == 1 and isinstance(shown[0], str) else None
        token = None if secret is None else self._tokens.find_token(secret_hash_of(secret))
        if token is None or token.state_at(self._clock.now()) is not TokenState.VALID:
            # Other than over HTTP, whoever shows one meant this node: silence would look like missing datasets.
            raise flight.FlightUnauthenticatedError("the token is unknown, expired or revoked")
        return token


def _address_of(peer: str) -> str | None:
    """Return the address in how gRPC names the other side: ``ipv4:1.2.3.4:5`` or ``ipv6:%5B::1%5D:5``."""
    _, _, place = peer.replace("%5B", "[").replace("%5D", "]").partition(":")
    try:
        return urlsplit(f"//{place}").hostname
    except ValueError:
        return None
