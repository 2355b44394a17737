"""Who pulls (SMART-7).

::

    opening -> planning -> planned -> fetching -> idle <-> locating
                  '-> refused                       '-> done
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from odf_protocol.errors import MalformedError, OdfError
from odf_protocol.multihash import Multihash
from odf_protocol.smart_transfer.asking import Refused, check_answered
from odf_protocol.smart_transfer.conversation import (
    NORMAL,
    SERVER_ERROR,
    Close,
    Closed,
    Ended,
    Failed,
    Opened,
    Received,
    Send,
    TimePassed,
    disconnected,
    out_of_turn,
    stalled,
)
from odf_protocol.smart_transfer.limits import ANSWER_S
from odf_protocol.smart_transfer.messages import (
    BlocksBatch,
    BlocksResponse,
    ObjectFile,
    ObjectsPullRequest,
    ObjectsPullResponse,
    PullRequest,
    PullResponse,
    PullStrategy,
    TransferPlan,
    decode_message,
    encode_message,
)
from odf_protocol.smart_transfer.problems import Empty

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


PullClientEvent = Opened | Received | Closed | TimePassed | FetchBlocks | Locate | Finish
PullClientEffect = Send | Close | Ended | Failed | Planned | Refused | BlocksArrived | Located


class _State(Enum):
    OPENING = auto()
    PLANNING = auto()
    PLANNED = auto()
    FETCHING = auto()
    IDLE = auto()
    LOCATING = auto()
    DONE = auto()


_AWAITING: Final = {
    _State.PLANNING: "the plan",
    _State.FETCHING: "the blocks",
    _State.LOCATING: "the addresses of objects",
}


class PullClient:
    """One conversation."""

    def __init__(self, *, begin_after: Multihash | None, stop_at: Multihash | None = None, force: bool = False) -> None:
        self._request = PullRequest(
            begin_after=None if begin_after is None else str(begin_after),
            stop_at=None if stop_at is None else str(stop_at),
            force_update_if_diverged=force,
        )
        self._state = _State.OPENING
        self._asked: tuple[ObjectFile, ...] = ()
        self.deadline_s: float | None = None

    def handle(self, event: PullClientEvent, now_s: float) -> tuple[PullClientEffect, ...]:
        """Give what follows from the event; ``now_s`` is in seconds of any clock that does not jump."""
        try:
            return self._handle(event, now_s)
        except OdfError as error:
            self._rest(_State.DONE)
            return (Close(NORMAL, ""), Failed(error))

    def _handle(self, event: PullClientEvent, now_s: float) -> tuple[PullClientEffect, ...]:
        match self._state, event:
            case _State.OPENING, Opened():
                return self._ask(_State.PLANNING, encode_message(self._request), now_s)
            case _State.PLANNING, Received(text):
                return self._read_plan(text)
            case _State.PLANNED, FetchBlocks():
                return self._ask(_State.FETCHING, encode_message(Empty()), now_s)
            case _State.FETCHING, Received(text):
                batch = decode_message(text, BlocksResponse).blocks
                self._rest(_State.IDLE)
                return (BlocksArrived(batch),)
            case _State.IDLE, Locate(objects):
                self._asked = tuple(objects)
                return self._ask(_State.LOCATING, encode_message(ObjectsPullRequest(object_files=self._asked)), now_s)
            case _State.LOCATING, Received(text):
                strategies = decode_message(text, ObjectsPullResponse).object_transfer_strategies
                check_answered(self._asked, strategies)
                self._rest(_State.IDLE)
                return (Located(strategies),)
            case _State.PLANNED | _State.IDLE, Finish():
                self._rest(_State.DONE)
                return (Close(NORMAL, _FAREWELL), Ended())
            case _State.DONE, _:
                return ()
            case _, Closed(code, reason) if code == SERVER_ERROR and self._state is _State.PLANNING:
                # A server that fails says so in the words of the answer that was awaited (SMART-6).
                return self._read_plan(reason.encode())
            case _, Closed():
                raise disconnected(event, self._awaited())
            case _, TimePassed() if self._state in _AWAITING:
                raise stalled(self._awaited())
            case _, Received(text):
                raise out_of_turn(text[:80])
        raise ValueError(f"{type(event).__name__} while {self._state.name}")

    def _read_plan(self, text: bytes) -> tuple[PullClientEffect, ...]:
        answer = decode_message(text, PullResponse)
        if answer.problem is not None:
            self._rest(_State.DONE)
            return (Close(NORMAL, ""), Refused(answer.problem))
        if not answer.ok:
            raise MalformedError("answer", expected="a plan", found="none")
        self._rest(_State.PLANNED)
        return (Planned(answer.ok.transfer_plan),)

    def _ask(self, state: _State, text: bytes, now_s: float) -> tuple[PullClientEffect, ...]:
        self._state = state
        self.deadline_s = now_s + ANSWER_S
        return (Send(text),)

    def _rest(self, state: _State) -> None:
        self._state = state
        self.deadline_s = None

    def _awaited(self) -> str:
        return _AWAITING.get(self._state, "we were done")
