"""What all four roles share: what happens to a conversation, what it does, and how it ends (SMART-5, SMART-6)."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

import msgspec

from odf_protocol.errors import OdfError, RejectedError, UnavailableError
from odf_smart_protocol.messages import ObjectFile, PullStrategy, PushStrategy, encode_message
from odf_smart_protocol.problems import TransferProblem

NORMAL: Final = 1000
SERVER_ERROR: Final = 1011
"""Source: RFC 6455 section 7.4.1."""
MAX_REASON_BYTES: Final = 123
"""Source: RFC 6455 section 5.5: a control frame has 125 bytes, two of them are the code."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The connection is there."""


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
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
class SendMessage:
    """SendMessage a text message."""

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
class ConversationFailed:
    """The conversation ended otherwise."""

    error: OdfError


@dataclass(frozen=True, slots=True)
class Rejected:
    """The other side says no."""

    problem: TransferProblem


_State = TypeVar("_State", bound=Enum)
_Event = TypeVar("_Event")
_Effect = TypeVar("_Effect")


class ConversationRole(ABC, Generic[_State, _Event, _Effect]):
    """One conversation, as one side sees it; nothing follows after ``Ended``, ``ConversationFailed`` or ``Rejected``.

    Attributes:
        deadline_s: Until when something has to come; then ``TimePassed`` is handed in. None: it may take its time.
    """

    def __init__(self, state: _State, waits_s: Mapping[_State, float]) -> None:
        self._state = state
        self._waits_s = waits_s
        self._is_over = False
        self.deadline_s: float | None = None

    def handle(self, event: _Event, now_s: float) -> tuple[_Effect | SendMessage | Close | ConversationFailed, ...]:
        """Give the effects of an event, in the order in which they are to be carried out.

        Args:
            event: What happened.
            now_s: Seconds of any clock that does not jump.
        """
        if self._is_over:
            return ()
        effects: tuple[_Effect | SendMessage | Close | ConversationFailed, ...]
        try:
            effects = self._handle(event)
        except OdfError as error:
            effects = (self._explain(error), ConversationFailed(error))
        self._is_over = any(isinstance(effect, Ended | ConversationFailed | Rejected) for effect in effects)
        wait_s = None if self._is_over else self._waits_s.get(self._state)
        self.deadline_s = None if wait_s is None else now_s + wait_s
        return effects

    @abstractmethod
    def _handle(self, event: _Event) -> tuple[_Effect, ...]:
        """Do one step.

        Raises:
            OdfError: The conversation cannot go on.
        """

    def _explain(self, error: OdfError) -> SendMessage | Close:  # noqa: ARG002 - a client does not say
        """Tell the other side that this one cannot go on."""
        return Close(NORMAL, "")

    def _send(self, state: _State, message: msgspec.Struct) -> tuple[SendMessage]:
        self._state = state
        return (SendMessage(encode_message(message)),)

    def _unexpected(self, event: _Event, awaited: str) -> OdfError:
        """Make the error for an event that has no place in this state."""
        match event:
            case Closed(code, reason):
                how = "the connection broke" if code is None else f"the other side closed with {code}"
                return UnavailableError(f"{how} before {awaited}" + (f": {reason}" if reason else ""))
            case TimePassed() if self.deadline_s is not None:
                return UnavailableError(f"nothing came for {awaited}")
            case ReceivedMessage(text):
                return RejectedError("SMART-5 messages-come-in-turn", expected="none", found=text[:80])
        raise ValueError(f"{type(event).__name__} while {self._state.name}")


def check_answered(asked: Sequence[ObjectFile], strategies: Sequence[PullStrategy] | Sequence[PushStrategy]) -> None:
    """Check that each object that was asked for is answered once, and no other.

    What the answers say is written to disk, or uploaded: an address counts only for an object that was asked for.

    Raises:
        RejectedError: SMART-7.
    """
    found = {item.object_file.hash for item in strategies}
    wanted = {item.hash for item in asked}
    if found != wanted or len(strategies) != len(asked):
        raise RejectedError(
            "SMART-7 answers-what-was-asked", expected=f"{len(wanted)} objects", found=f"{len(found)} others"
        )


def cut_reason(text: str) -> str:
    """Cut a reason to what a closing frame holds."""
    return text.encode()[:MAX_REASON_BYTES].decode(errors="ignore")


def quote_reason(text: str) -> str:
    """Write a reason as a JSON text, cut to what a closing frame holds."""
    plain = "".join(character if character.isascii() and character.isprintable() else "?" for character in text)
    return f'"{plain.replace(chr(92), "/").replace(chr(34), chr(39))[: MAX_REASON_BYTES - 2]}"'
