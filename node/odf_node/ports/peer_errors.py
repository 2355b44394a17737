"""Errors of the exchange with others.

::

    OdfError
    ├── NotFoundError
    │   └── PeerNotFoundError        the peer has no such dataset, block or object
    │       └── PlaceNotFoundError   there is no such folder or archive, or it holds no dataset
    ├── UnavailableError
    │   ├── PeerUnavailableError     the peer does not answer, or the line broke: try again
    │   │   └── PeerPreparesError    it makes the object again: ask later
    │   └── AddressInUseError        the port to listen on is taken
    └── RejectedError
        ├── PeerLiedError            the peer breaks a rule of the exchange: do not ask it again
        ├── PeerForbidsError         the peer wants a token, or a better one
        └── PushRejectedError         the receiver of a push checked it and rejected
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from odf_protocol.errors import NotFoundError, RejectedError, UnavailableError


class PeerNotFoundError(NotFoundError):
    """The peer answers, and does not have it; unpublished things look the same."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(f"{url}: the peer has no such {what}")
        self.url = url
        self.what = what


class PlaceNotFoundError(PeerNotFoundError):
    """Files were named instead of a peer, and there are none: ``reason`` says what is missing at ``place``."""

    def __init__(self, place: str, what: str, reason: str) -> None:
        super().__init__(place, what)
        self.args = (f"{place}: {reason}",)
        self.reason = reason


class PeerUnavailableError(UnavailableError):
    """The peer could not be reached, or stopped in the middle; ``advice`` says what to do about it."""

    def __init__(self, url: str, reason: str, advice: str = "try again later") -> None:
        super().__init__(f"{url}: {reason}; {advice}")
        self.url = url
        self.reason = reason
        self.advice = advice


class PeerPreparesError(PeerUnavailableError):
    """The peer computes the object again just now and asks to be asked later (CACHE-6)."""

    def __init__(self, url: str) -> None:
        super().__init__(url, "it computes the object again just now")


class AddressInUseError(UnavailableError):
    """Another program listens on the address."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on {host} port {port}: {reason}; choose another port or address")
        self.host = host
        self.port = port


class PeerLiedError(RejectedError):
    """What the peer sent contradicts what it, or the block, said before."""

    def __init__(self, url: str, rule: str, *, expected: object = None, found: object = None) -> None:
        super().__init__(rule, expected=expected, found=found)
        self.args = (f"{url}: the peer {self.args[0]}",)
        self.url = url


class PeerForbidsError(RejectedError):
    """The peer wants a token (``status`` 401) or one that allows more (403)."""

    def __init__(self, url: str, status: int, detail: str = "") -> None:
        super().__init__("EX-17 token")
        place = urlsplit(url)
        wants, advice = "a token that allows this", ""
        if status == 401:
            wants = "a token that it knows"
            advice = f"; ask its operator for one, and keep it with 'odf-node login {place.scheme}://{place.netloc}'"
        self.args = (f"{url}: the peer wants {wants}{f': {detail}' if detail else ''}{advice}",)
        self.url = url
        self.status = status


class PushRejectedError(RejectedError):
    """The other node checked what it was asked or offered and rejected; its records are unchanged.

    Attributes:
        reason: The receiver's sentence for people.
        report: Everything its checks found, as plain JSON values.
    """

    def __init__(
        self,
        url: str,
        rule: str,
        reason: str,
        *,
        sequence_number: int | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(rule or "EX-18 push", sequence_number=sequence_number)
        self.args = (f"{url} rejected: {reason}",)
        self.url = url
        self.reason = reason
        self.report = dict(report or {})
