"""Who is pushed to (SMART-10).

::

    waiting -> judging -> blocks -> taking -> objects -> planning -> uploading -> complete -> committing -> ended
                                                 ^------- more ---------'
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from odf_protocol.errors import OdfError, RejectedError
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
    quote_reason,
)
from odf_smart_protocol.limits import IDLE_S
from odf_smart_protocol.messages import (
    Answer,
    BlocksBatch,
    ObjectFile,
    ObjectsPushRequest,
    ObjectsPushResponse,
    PushBlocks,
    PushProgress,
    PushStrategies,
    PushStrategy,
    SmartPushRequest,
    decode_message,
    encode_message,
)
from odf_smart_protocol.problems import Empty, Internal, TransferProblem


@dataclass(frozen=True, slots=True)
class Agreed:
    """What was asked last may go on; after CommitTransfer: it is accepted."""


@dataclass(frozen=True, slots=True)
class Declined:
    """What was asked last may not go on."""

    problem: TransferProblem


@dataclass(frozen=True, slots=True)
class UploadsPlanned:
    """These are to be uploaded, or are here."""

    strategies: Sequence[PushStrategy]


@dataclass(frozen=True, slots=True)
class Judge:
    """May this be pushed? Answer with Agreed or Declined."""

    request: SmartPushRequest


@dataclass(frozen=True, slots=True)
class TakeBlocks:
    """Keep these; answer with Agreed or Declined."""

    batch: BlocksBatch


@dataclass(frozen=True, slots=True)
class PlanUploads:
    """Say which are to be uploaded, and where; answer with UploadsPlanned or Declined."""

    objects: tuple[ObjectFile, ...]


@dataclass(frozen=True, slots=True)
class CommitTransfer:
    """Verify and accept; answer with Agreed or Declined."""


PushServerEvent = ReceivedMessage | Closed | TimePassed | Agreed | Declined | UploadsPlanned | ConversationFailed
PushServerEffect = SendMessage | Close | Ended | ConversationFailed | Judge | TakeBlocks | PlanUploads | CommitTransfer


class _State(Enum):
    WAITING = auto()
    JUDGING = auto()
    BLOCKS = auto()
    TAKING = auto()
    OBJECTS = auto()
    PLANNING = auto()
    UPLOADING = auto()
    COMPLETE = auto()
    COMMITTING = auto()


class PushServer(ConversationRole[_State, PushServerEvent, PushServerEffect]):
    """One conversation. ``ConversationFailed`` may be handed in at any time: what was asked for cannot be done."""

    def __init__(self, now_s: float) -> None:
        # A verdict takes as long as it takes.
        super().__init__(_State.WAITING, dict.fromkeys(set(_State) - {_State.COMMITTING}, IDLE_S))
        self._num_blocks = 0
        self._more_objects = False
        self._declined: TransferProblem | None = None
        self.deadline_s = now_s + IDLE_S

    def touch(self, now_s: float) -> None:
        """Note that objects are arriving beside the conversation."""
        if self.deadline_s is not None:
            self.deadline_s = now_s + IDLE_S

    def _handle(self, event: PushServerEvent) -> tuple[PushServerEffect, ...]:
        match self._state, event:
            case _, Closed():
                return (ConversationFailed(RejectedError("SMART-10 push-is-completed", found="the pusher left")),)
            case _State.TAKING, ConversationFailed(error):
                return self._decline_blocks(_internal("ObjectsRequest", error))
            case _, ConversationFailed(error):
                raise error
            case _, ReceivedMessage():
                return self._read(event)
            case _State.JUDGING, Agreed():
                return self._send(_State.BLOCKS, Answer(ok=Empty()))
            case _State.JUDGING, Declined(problem):
                return self._end(Answer(err=problem), problem)
            case _State.TAKING, Agreed():
                return self._send(_State.OBJECTS, Answer(ok=Empty()))
            case _State.TAKING, Declined(problem):
                return self._decline_blocks(problem)
            case _State.PLANNING, UploadsPlanned(strategies):
                answer = ObjectsPushResponse(ok=PushStrategies(object_transfer_strategies=tuple(strategies)))
                return self._send(_State.UPLOADING, answer)
            case _State.PLANNING, Declined(problem):
                return self._end(ObjectsPushResponse(err=problem), problem)
            case _State.COMMITTING, Agreed():
                return (SendMessage(encode_message(Empty())), Ended())
            case _State.COMMITTING, Declined(problem):
                raise _declined(problem)
        raise self._unexpected(event, "the next request")

    def _read(self, event: ReceivedMessage) -> tuple[PushServerEffect, ...]:
        text = event.text
        match self._state:
            case _State.WAITING:
                request = decode_message(text, SmartPushRequest)
                self._state, self._num_blocks = _State.JUDGING, request.transfer_plan.num_blocks
                return (Judge(request),)
            case _State.BLOCKS:
                batch = decode_message(text, PushBlocks).new_blocks
                if batch.num_blocks != self._num_blocks:
                    raise RejectedError(
                        "SMART-10 as-many-blocks-as-planned", expected=self._num_blocks, found=batch.num_blocks
                    )
                self._state = _State.TAKING
                return (TakeBlocks(batch),)
            case _State.OBJECTS:
                asked = decode_message(text, ObjectsPushRequest)
                if self._declined is not None:
                    return self._end(ObjectsPushResponse(err=self._declined), self._declined)
                self._state, self._more_objects = _State.PLANNING, asked.is_truncated
                return (PlanUploads(asked.object_files),)
            case _State.UPLOADING:
                if decode_message(text, PushProgress).details == "Complete":
                    self._state = _State.OBJECTS if self._more_objects else _State.COMPLETE
                return ()
            case _State.COMPLETE:
                decode_message(text, Empty)
                self._state = _State.COMMITTING
                return (CommitTransfer(),)
        raise self._unexpected(event, "the next request")

    def _decline_blocks(self, problem: TransferProblem) -> tuple[PushServerEffect, ...]:
        if problem.seed_block_overwrite_restricted:
            return self._end(Answer(err=problem), problem)
        # The answer to blocks can say nothing else; what is wrong is said in the next one, as others do.
        self._declined = problem
        return self._send(_State.OBJECTS, Answer(ok=Empty()))

    def _end(self, answer: Answer | ObjectsPushResponse, problem: TransferProblem) -> tuple[PushServerEffect, ...]:
        return (SendMessage(encode_message(answer)), ConversationFailed(_declined(problem)))

    def _explain(self, error: OdfError) -> SendMessage | Close:
        match self._state:
            case _State.WAITING | _State.JUDGING:
                return SendMessage(encode_message(Answer(err=_internal("InitialRequest", error))))
            case _State.OBJECTS | _State.PLANNING:
                return SendMessage(encode_message(ObjectsPushResponse(err=_internal("ObjectsRequest", error))))
        # Others read the reason as the awaited answer. The last one is {}, and any object would be read as it: a text
        # is none, and is shown (SMART-6).
        return Close(SERVER_ERROR, quote_reason(f"rejected: {error}"))


def _internal(phase: str, error: OdfError) -> TransferProblem:
    return TransferProblem(internal=Internal(phase={"Push": phase}, error_message=str(error)))


def _declined(problem: TransferProblem) -> RejectedError:
    error = RejectedError("SMART-10 push-is-acceptable")
    error.args = (problem.explain(),)
    return error
