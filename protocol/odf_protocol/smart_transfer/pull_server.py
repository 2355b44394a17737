"""Who is pulled from (SMART-8).

::

    waiting -> preparing -> planned -> serving <-> locating
                  '-> refused   '-> ended '-> ended
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
    Role,
    Send,
    TimePassed,
    cut_reason,
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


class PullServer(Role[_State, PullServerEvent, PullServerEffect]):
    """One conversation. ``Failed`` may be handed in at any time: what was asked for cannot be done."""

    def __init__(self, now_s: float) -> None:
        super().__init__(_State.WAITING, dict.fromkeys(_State, IDLE_S))
        self._batch: BlocksBatch | None = None
        self.deadline_s = now_s + IDLE_S

    def _handle(self, event: PullServerEvent) -> tuple[PullServerEffect, ...]:
        match self._state, event:
            case _, Closed():
                return (Ended(),)
            case _, Failed(error):
                raise error
            case _State.WAITING, Received(text):
                self._state = _State.PREPARING
                return (Prepare(decode_message(text, PullRequest)),)
            case _State.PREPARING, Prepared(plan, batch):
                self._batch = batch
                return self._send(_State.PLANNED, PullResponse(ok=PullPlan(transfer_plan=plan)))
            case _State.PREPARING, NotPrepared(problem):
                return (Send(encode_message(PullResponse(err=problem))), Ended())
            case _State.PLANNED, Received(text) if self._batch is not None:
                decode_message(text, Empty)
                batch, self._batch = self._batch, None
                return self._send(_State.SERVING, BlocksResponse(blocks=batch))
            case _State.SERVING, Received(text):
                self._state = _State.LOCATING
                return (LocateObjects(decode_message(text, ObjectsPullRequest).object_files),)
            case _State.LOCATING, ObjectsLocated(strategies):
                return self._send(_State.SERVING, ObjectsPullResponse(object_transfer_strategies=tuple(strategies)))
        raise self._unexpected(event, "the next request")

    def _say_why(self, error: OdfError) -> Send | Close:
        if self._state in {_State.WAITING, _State.PREPARING}:
            internal = Internal(phase={"Pull": "InitialRequest"}, error_message=str(error))
            return Send(encode_message(PullResponse(err=Problem(internal=internal))))
        # No other answer of a pull can say that something is wrong.
        return Close(SERVER_ERROR, cut_reason(str(error)))
