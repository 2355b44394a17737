"""Who is pulled from (SMART-8).

::

    waiting -> preparing -> planned -> serving <-> locating
                  '-> refused   '-> done  '-> done
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from odf_protocol.errors import OdfError
from odf_protocol.smart_transfer.conversation import (
    SERVER_ERROR,
    Close,
    Closed,
    Ended,
    Failed,
    Received,
    Send,
    TimePassed,
    cut_reason,
    out_of_turn,
    stalled,
)
from odf_protocol.smart_transfer.limits import IDLE_S
from odf_protocol.smart_transfer.messages import (
    BlocksBatch,
    BlocksResponse,
    ObjectFile,
    ObjectsPullRequest,
    ObjectsPullResponse,
    PullPlan,
    PullRequest,
    PullResponse,
    PullStrategy,
    TransferPlan,
    decode_message,
    encode_message,
)
from odf_protocol.smart_transfer.problems import Empty, Internal, Problem


@dataclass(frozen=True, slots=True)
class Prepared:
    """This is there; ``batch`` None: nothing new."""

    plan: TransferPlan
    batch: BlocksBatch | None


@dataclass(frozen=True, slots=True)
class NotPrepared:
    """There is no such interval."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class ObjectsLocated:
    """There the objects can be read."""

    strategies: Sequence[PullStrategy]


@dataclass(frozen=True, slots=True)
class Prepare:
    """Find the blocks that are asked for; answer with Prepared or NotPrepared."""

    request: PullRequest


@dataclass(frozen=True, slots=True)
class LocateObjects:
    """Find out where these can be read; answer with ObjectsLocated."""

    objects: tuple[ObjectFile, ...]


PullServerEvent = Received | Closed | TimePassed | Prepared | NotPrepared | ObjectsLocated | Failed
PullServerEffect = Send | Close | Ended | Failed | Prepare | LocateObjects


class _State(Enum):
    WAITING = auto()
    PREPARING = auto()
    PLANNED = auto()
    SERVING = auto()
    LOCATING = auto()
    DONE = auto()


class PullServer:
    """One conversation. ``Failed`` may be handed in at any time: what was asked for cannot be done."""

    def __init__(self, now_s: float) -> None:
        self._state = _State.WAITING
        self._batch: BlocksBatch | None = None
        self.deadline_s: float | None = now_s + IDLE_S

    def handle(self, event: PullServerEvent, now_s: float) -> tuple[PullServerEffect, ...]:
        """Give what follows from the event; ``now_s`` is in seconds of any clock that does not jump."""
        try:
            effects = self._handle(event)
        except OdfError as error:
            return self._fail(error)
        self.deadline_s = None if self._state is _State.DONE else now_s + IDLE_S
        return effects

    def _handle(self, event: PullServerEvent) -> tuple[PullServerEffect, ...]:
        match self._state, event:
            case _State.DONE, _:
                return ()
            case _, Closed():
                self._state = _State.DONE
                return (Ended(),)
            case _, TimePassed():
                raise stalled("the next request")
            case _, Failed(error):
                raise error
            case _State.WAITING, Received(text):
                self._state = _State.PREPARING
                return (Prepare(decode_message(text, PullRequest)),)
            case _State.PREPARING, Prepared(plan, batch):
                self._state, self._batch = _State.PLANNED, batch
                return (Send(encode_message(PullResponse(ok=PullPlan(transfer_plan=plan)))),)
            case _State.PREPARING, NotPrepared(problem):
                self._state = _State.DONE
                return (Send(encode_message(PullResponse(err=problem))), Ended())
            case _State.PLANNED, Received(text) if self._batch is not None:
                decode_message(text, Empty)
                self._state, batch, self._batch = _State.SERVING, self._batch, None
                return (Send(encode_message(BlocksResponse(blocks=batch))),)
            case _State.SERVING, Received(text):
                self._state = _State.LOCATING
                return (LocateObjects(decode_message(text, ObjectsPullRequest).object_files),)
            case _State.LOCATING, ObjectsLocated(strategies):
                self._state = _State.SERVING
                answer = ObjectsPullResponse(object_transfer_strategies=tuple(strategies))
                return (Send(encode_message(answer)),)
            case _, Received(text):
                raise out_of_turn(text[:80])
        raise ValueError(f"{type(event).__name__} while {self._state.name}")

    def _fail(self, error: OdfError) -> tuple[PullServerEffect, ...]:
        was, self._state, self.deadline_s = self._state, _State.DONE, None
        if was in {_State.WAITING, _State.PREPARING}:
            internal = Internal(phase={"Pull": "InitialRequest"}, error_message=str(error))
            return (Send(encode_message(PullResponse(err=Problem(internal=internal)))), Failed(error))
        # No other answer of a pull can say that something is wrong.
        return (Close(SERVER_ERROR, cut_reason(str(error))), Failed(error))
