"""Who is pulled from (SMART-8).

::

    waiting -> preparing -> planned -> serving <-> locating
                  '-> rejected   '-> ended '-> ended
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from odf_protocol.errors import OdfError
from odf_smart_protocol.conversation import (
    SERVER_ERROR,
    Close,
    Closed,
    ConversationFailed,
    ConversationRole,
    Ended,
    ReceivedMessage,
    SendMessage,
    TimePassed,
    cut_reason,
)
from odf_smart_protocol.limits import IDLE_S
from odf_smart_protocol.messages import (
    BlocksBatch,
    BlocksResponse,
    ObjectFile,
    ObjectsPullRequest,
    ObjectsPullResponse,
    PullPlan,
    PullResponse,
    PullStrategy,
    SmartPullRequest,
    TransferPlan,
    decode_message,
    encode_message,
)
from odf_smart_protocol.problems import Empty, Internal, TransferProblem


@dataclass(frozen=True, slots=True)
class PreparedTransfer:
    """This is there; ``batch`` None: nothing new."""

    plan: TransferPlan
    batch: BlocksBatch | None


@dataclass(frozen=True, slots=True)
class NotPrepared:
    """There is no such interval."""

    problem: TransferProblem


@dataclass(frozen=True, slots=True)
class ObjectsLocated:
    """There the objects can be read."""

    strategies: Sequence[PullStrategy]


@dataclass(frozen=True, slots=True)
class Prepare:
    """Find the blocks that are asked for; answer with PreparedTransfer or NotPrepared."""

    request: SmartPullRequest


@dataclass(frozen=True, slots=True)
class LocateObjects:
    """Find out where these can be read; answer with ObjectsLocated."""

    objects: tuple[ObjectFile, ...]


PullServerEvent = (
    ReceivedMessage | Closed | TimePassed | PreparedTransfer | NotPrepared | ObjectsLocated | ConversationFailed
)
PullServerEffect = SendMessage | Close | Ended | ConversationFailed | Prepare | LocateObjects


class _State(Enum):
    WAITING = auto()
    PREPARING = auto()
    PLANNED = auto()
    SERVING = auto()
    LOCATING = auto()


class PullServer(ConversationRole[_State, PullServerEvent, PullServerEffect]):
    """One conversation. ``ConversationFailed`` may be handed in at any time: what was asked for cannot be done."""

    def __init__(self, now_s: float) -> None:
        super().__init__(_State.WAITING, dict.fromkeys(_State, IDLE_S))
        self._batch: BlocksBatch | None = None
        self.deadline_s = now_s + IDLE_S

    def _handle(self, event: PullServerEvent) -> tuple[PullServerEffect, ...]:
        match self._state, event:
            case _, Closed():
                return (Ended(),)
            case _, ConversationFailed(error):
                raise error
            case _State.WAITING, ReceivedMessage(text):
                self._state = _State.PREPARING
                return (Prepare(decode_message(text, SmartPullRequest)),)
            case _State.PREPARING, PreparedTransfer(plan, batch):
                self._batch = batch
                return self._send(_State.PLANNED, PullResponse(ok=PullPlan(transfer_plan=plan)))
            case _State.PREPARING, NotPrepared(problem):
                return (SendMessage(encode_message(PullResponse(err=problem))), Ended())
            case _State.PLANNED, ReceivedMessage(text) if self._batch is not None:
                decode_message(text, Empty)
                batch, self._batch = self._batch, None
                return self._send(_State.SERVING, BlocksResponse(blocks=batch))
            case _State.SERVING, ReceivedMessage(text):
                self._state = _State.LOCATING
                return (LocateObjects(decode_message(text, ObjectsPullRequest).object_files),)
            case _State.LOCATING, ObjectsLocated(strategies):
                return self._send(_State.SERVING, ObjectsPullResponse(object_transfer_strategies=tuple(strategies)))
        raise self._unexpected(event, "the next request")

    def _explain(self, error: OdfError) -> SendMessage | Close:
        if self._state in {_State.WAITING, _State.PREPARING}:
            internal = Internal(phase={"Pull": "InitialRequest"}, error_message=str(error))
            return SendMessage(encode_message(PullResponse(err=TransferProblem(internal=internal))))
        # No other answer of a pull can say that something is wrong.
        return Close(SERVER_ERROR, cut_reason(str(error)))
