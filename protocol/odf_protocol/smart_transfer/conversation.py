"""What all four roles share: what happens to a conversation, what it does, and how it ends (SMART-5, SMART-6).

``handle(event, now_s)`` gives the effects in the order in which they are to be carried out. ``deadline_s`` says until
when something has to come; the shell then hands in ``TimePassed``. After ``Ended`` or ``Failed`` nothing follows.
"""

from dataclasses import dataclass
from typing import Final

from odf_protocol.errors import OdfError, RejectedError, UnavailableError

__all__ = ["NORMAL", "SERVER_ERROR", "Close", "Closed", "Ended", "Failed", "Opened", "Received", "Send", "TimePassed"]

NORMAL: Final = 1000
SERVER_ERROR: Final = 1011
"""Source: RFC 6455 section 7.4.1."""
MAX_REASON_BYTES: Final = 123
"""Source: RFC 6455 section 5.5: a control frame has 125 bytes, two of them are the code."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The connection is there."""


@dataclass(frozen=True, slots=True)
class Received:
    """A text message came."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The other side has closed; ``code`` None: the line broke."""

    code: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The deadline is over."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a text message."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The conversation ended as it should."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The conversation ended otherwise."""

    error: OdfError


def disconnected(event: Closed, awaited: str) -> UnavailableError:
    """Make the error for a connection that ended while something was awaited."""
    how = "the connection broke" if event.code is None else f"the other side closed with {event.code}"
    said = f": {event.reason}" if event.reason else ""
    return UnavailableError(f"{how} before {awaited}{said}")


def stalled(awaited: str) -> UnavailableError:
    """Make the error for an answer that did not come."""
    return UnavailableError(f"nothing came for {awaited}")


def out_of_turn(found: object) -> RejectedError:
    """Make the error for a message that nobody awaits."""
    return RejectedError("SMART-5 messages-come-in-turn", expected="none", found=found)


def cut_reason(text: str) -> str:
    """Cut a reason to what a closing frame holds."""
    return text.encode()[:MAX_REASON_BYTES].decode(errors="ignore")


def quote_reason(text: str) -> str:
    """Write a reason as a JSON text, cut to what a closing frame holds."""
    plain = "".join(character if character.isascii() and character.isprintable() else "?" for character in text)
    return f'"{plain.replace(chr(92), "/").replace(chr(34), chr(39))[: MAX_REASON_BYTES - 2]}"'
