"""Who pushes (SMART-9).

::

    opening -> offering -> sending -> asking -> uploading -> confirming -> ended
                                        ^-- more --'
    offering, sending, asking -> rejected
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from odf_protocol.errors import MalformedError, RejectedError
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
from odf_smart_protocol.limits import ANSWER_S, MAX_OBJECTS_PER_MESSAGE, VERDICT_S
from odf_smart_protocol.messages import (
    Answer,
    BlocksBatch,
    ObjectFile,
    ObjectsPushRequest,
    ObjectsPushResponse,
    PushBlocks,
    PushProgress,
    PushStrategy,
    Running,
    SmartPushRequest,
    decode_message,
)
from odf_smart_protocol.problems import Empty

_FAREWELL: Final = "Client push flow succeeded"
"""Word for word as others say it."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """So many of the objects to be uploaded are there."""

    count: int


@dataclass(frozen=True, slots=True)
class UploadsDone:
    """All of them are there."""


@dataclass(frozen=True, slots=True)
class Upload:
    """Upload these; answer with UploadsDone."""

    strategies: tuple[PushStrategy, ...]


PushClientEvent = Opened | ReceivedMessage | Closed | TimePassed | Uploaded | UploadsDone
PushClientEffect = SendMessage | Close | Ended | ConversationFailed | Upload | Rejected


class _State(Enum):
    OPENING = auto()
    OFFERING = auto()
    SENDING = auto()
    ASKING = auto()
    UPLOADING = auto()
    CONFIRMING = auto()


_AWAITED: Final = {
    _State.OFFERING: "the answer to the offer",
    _State.SENDING: "the answer to the blocks",
    _State.ASKING: "the addresses of objects",
    _State.CONFIRMING: "the end of the push was confirmed",
}


class PushClient(ConversationRole[_State, PushClientEvent, PushClientEffect]):
    """One conversation; ``Ended`` says that the other side has accepted."""

    def __init__(self, proposal: SmartPushRequest, batch: BlocksBatch, objects: Sequence[ObjectFile]) -> None:
        super().__init__(_State.OPENING, dict.fromkeys(_AWAITED, ANSWER_S) | {_State.CONFIRMING: VERDICT_S})
        self._proposal = proposal
        self._batch: BlocksBatch | None = batch
        self._objects = tuple(objects)
        self._asked: tuple[ObjectFile, ...] = ()
        self._next = 0
        self._uploaded = 0

    def _handle(self, event: PushClientEvent) -> tuple[PushClientEffect, ...]:
        match self._state, event:
            case _State.OPENING, Opened():
                return self._send(_State.OFFERING, self._proposal)
            case _State.UPLOADING, Uploaded(count):
                self._uploaded = count
                return ()
            case _State.UPLOADING, UploadsDone():
                done = self._send(_State.CONFIRMING, PushProgress(details="Complete"))
                return done + (self._ask_for_addresses() if self._has_more() else self._send(self._state, Empty()))
            case _State.UPLOADING, ReceivedMessage(text):
                decode_message(text, Empty)
                return self._send(_State.UPLOADING, PushProgress(details=Running.of(self._uploaded)))
            case _State.CONFIRMING, ReceivedMessage(text):
                decode_message(text, Empty)
                return (Close(NORMAL, _FAREWELL), Ended())
            case _State.OFFERING | _State.SENDING | _State.ASKING, ReceivedMessage(text):
                return self._read_answer(text)
            case _, Closed(code, reason) if code == SERVER_ERROR:
                return self._read_reason(event, reason)
        raise self._unexpected(event, self._awaited())

    def _read_answer(self, text: bytes) -> tuple[PushClientEffect, ...]:
        answer = decode_message(text, ObjectsPushResponse if self._state is _State.ASKING else Answer)
        if answer.problem is not None:
            return (Close(NORMAL, ""), Rejected(answer.problem))
        if self._state is _State.OFFERING and self._batch is not None:
            blocks, self._batch = PushBlocks(new_blocks=self._batch), None
            return self._send(_State.SENDING, blocks)
        if self._state is _State.SENDING:
            return self._ask_for_addresses()
        if not (isinstance(answer, ObjectsPushResponse) and answer.ok):
            raise MalformedError("answer", expected="addresses of objects", found="none")
        strategies = answer.ok.object_transfer_strategies
        self._check_strategies(strategies)
        self._state = _State.UPLOADING
        return (Upload(tuple(item for item in strategies if item.push_strategy == "HttpUpload")),)

    def _read_reason(self, event: Closed, reason: str) -> tuple[PushClientEffect, ...]:
        """Read a failure in the words of the answer that was awaited (SMART-6); never take it for a good answer."""
        try:
            problem = decode_message(reason.encode(), Answer).problem
        except MalformedError:
            problem = None
        if problem is not None and self._state in _AWAITED:
            return (Close(NORMAL, ""), Rejected(problem))
        if self._state is _State.CONFIRMING:
            raise RejectedError("SMART-9 receiver-accepts", found=reason.strip('"') or "no reason given")
        raise self._unexpected(event, self._awaited())

    def _ask_for_addresses(self) -> tuple[SendMessage]:
        self._asked = self._objects[self._next : self._next + MAX_OBJECTS_PER_MESSAGE]
        self._next += len(self._asked)
        return self._send(_State.ASKING, ObjectsPushRequest(object_files=self._asked, is_truncated=self._has_more()))

    def _has_more(self) -> bool:
        return self._next < len(self._objects)

    def _check_strategies(self, strategies: Sequence[PushStrategy]) -> None:
        # Nothing may be uploaded that was not offered, and a skipped object is one that the receiver says it has.
        check_answered(self._asked, strategies)
        for item in strategies:
            if item.push_strategy == "HttpUpload" and item.upload_to is None:
                raise MalformedError("upload strategy", expected="an address", found="none")

    def _awaited(self) -> str:
        return _AWAITED.get(self._state, "the uploads were done")
