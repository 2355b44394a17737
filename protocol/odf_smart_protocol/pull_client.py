"""Who pulls (SMART-7).

::

    opening -> planning -> planned -> fetching -> idle <-> locating
                  '-> rejected  '-> ended            '-> ended
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from odf_protocol.errors import MalformedError
from odf_protocol.multihash import Multihash
from odf_smart_protocol.conversation import (
    NORMAL,
    SERVER_ERROR,
    Close,
    Closed,
    ConversationFailed,
    ConversationRole,
    Ended,
    Opened,
    ReceivedMessage,
    Rejected,
    SendMessage,
    TimePassed,
    check_answered,
)
from odf_smart_protocol.limits import ANSWER_S
from odf_smart_protocol.messages import (
    BlocksBatch,
    BlocksResponse,
    ObjectFile,
    ObjectsPullRequest,
    ObjectsPullResponse,
    PullResponse,
    PullStrategy,
    SmartPullRequest,
    TransferPlan,
    decode_message,
)
from odf_smart_protocol.problems import Empty

_FAREWELL: Final = "Client pull flow succeeded"
"""Word for word as others say it."""


@dataclass(frozen=True, slots=True)
class FetchBlocks:
    """We want the blocks of the plan."""


@dataclass(frozen=True, slots=True)
class Locate:
    """We want to know where these objects can be read."""

    objects: Sequence[ObjectFile]


@dataclass(frozen=True, slots=True)
class Finish:
    """We have what we want."""


@dataclass(frozen=True, slots=True)
class Planned:
    """There is this much; nothing, if it has no blocks."""

    plan: TransferPlan


@dataclass(frozen=True, slots=True)
class BlocksArrived:
    """The blocks are there, not yet read."""

    batch: BlocksBatch


@dataclass(frozen=True, slots=True)
class Located:
    """There the objects can be read, in the order of the question."""

    strategies: tuple[PullStrategy, ...]


PullClientEvent = Opened | ReceivedMessage | Closed | TimePassed | FetchBlocks | Locate | Finish
PullClientEffect = SendMessage | Close | Ended | ConversationFailed | Planned | Rejected | BlocksArrived | Located


class _State(Enum):
    OPENING = auto()
    PLANNING = auto()
    PLANNED = auto()
    FETCHING = auto()
    IDLE = auto()
    LOCATING = auto()


_AWAITED: Final = {
    _State.PLANNING: "the plan",
    _State.FETCHING: "the blocks",
    _State.LOCATING: "the addresses of objects",
}


class PullClient(ConversationRole[_State, PullClientEvent, PullClientEffect]):
    """One conversation."""

    def __init__(self, *, begin_after: Multihash | None, stop_at: Multihash | None = None, force: bool = False) -> None:
        super().__init__(_State.OPENING, dict.fromkeys(_AWAITED, ANSWER_S))
        self._request = SmartPullRequest(
            begin_after=None if begin_after is None else str(begin_after),
            stop_at=None if stop_at is None else str(stop_at),
            force_update_if_diverged=force,
        )
        self._asked: tuple[ObjectFile, ...] = ()

    def _handle(self, event: PullClientEvent) -> tuple[PullClientEffect, ...]:
        match self._state, event:
            case _State.OPENING, Opened():
                return self._send(_State.PLANNING, self._request)
            case _State.PLANNING, ReceivedMessage(text):
                return self._read_plan(text)
            case _State.PLANNED, FetchBlocks():
                return self._send(_State.FETCHING, Empty())
            case _State.FETCHING, ReceivedMessage(text):
                self._state = _State.IDLE
                return (BlocksArrived(decode_message(text, BlocksResponse).blocks),)
            case _State.IDLE, Locate(objects):
                self._asked = tuple(objects)
                return self._send(_State.LOCATING, ObjectsPullRequest(object_files=self._asked))
            case _State.LOCATING, ReceivedMessage(text):
                strategies = decode_message(text, ObjectsPullResponse).object_transfer_strategies
                check_answered(self._asked, strategies)
                self._state = _State.IDLE
                return (Located(strategies),)
            case _State.PLANNED | _State.IDLE, Finish():
                return (Close(NORMAL, _FAREWELL), Ended())
            case _State.PLANNING, Closed(code, reason) if code == SERVER_ERROR:
                # A server that fails says so in the words of the answer that was awaited (SMART-6).
                return self._read_plan(reason.encode())
        raise self._unexpected(event, _AWAITED.get(self._state, "we were done"))

    def _read_plan(self, text: bytes) -> tuple[PullClientEffect, ...]:
        answer = decode_message(text, PullResponse)
        if answer.problem is not None:
            return (Close(NORMAL, ""), Rejected(answer.problem))
        if not answer.ok:
            raise MalformedError("answer", expected="a plan", found="none")
        self._state = _State.PLANNED
        return (Planned(answer.ok.transfer_plan),)
