"""Telling a receiver of new blocks (NOTICE), and of bad rows (SINK-3): who can be told, how it went, when again."""

from enum import StrEnum
from typing import Final, Protocol
from urllib.parse import urlsplit

MAX_ATTEMPTS: Final = 12  # guess: with the waits below, three hours: a receiver that is put in order in a morning
_FIRST_WAIT_S: Final = 5.0
_LONGEST_WAIT_S: Final = 3600.0


def wait_after_s(attempts: int) -> float:
    """Say how long a receiver is left alone after so many attempts in vain."""
    return min(_FIRST_WAIT_S * float(2 ** (attempts - 1)), _LONGEST_WAIT_S)


def find_address_problem(url: str | None) -> str | None:
    """Say what keeps an address from being told, without showing it, as it may have a secret; None: nothing."""
    try:
        found = urlsplit(url or "")
        if found.scheme not in {"http", "https"} or not found.hostname or found.port == 0:
            return "expected an http or https address"
    except ValueError:
        return "expected an http or https address"
    if found.username is not None or found.password is not None or found.fragment:
        return "expected an address without user, password and fragment"
    return None


class Told(StrEnum):
    """How it went to tell."""

    DONE = "done"
    REJECTED = "refused"
    """The receiver will not have it; telling again would not help."""
    UNAVAILABLE = "unavailable"
    DROPPED = "dropped"
    """It was unavailable too often."""


class NoticeSending(Protocol):
    """Tells receivers."""

    async def send(self, url: str, body: bytes) -> tuple[Told, str]:
        """Tell one receiver.

        Args:
            url: Of the receiver, as the settings have it.
            body: JSON.

        Returns:
            How it went, and why in a few words without the address.
        """
        ...


class SignedPosting(Protocol):
    """Tells one receiver after the other."""

    @property
    def node_id(self) -> str:
        """The node's ``did:key:``."""
        ...

    def send(self, url: str, body: bytes) -> tuple[Told, str]:
        """As ``NoticeSending.send``."""
        ...
