"""Who pushes (SMART-9).

::

    opening -> offering -> sending -> asking -> uploading -> confirming -> done
                                        ^-- more --'
    offering, sending, asking -> refused
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from odf_protocol.errors import MalformedError, OdfError, RejectedError
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
from odf_protocol.smart_transfer.limits import ANSWER_S, MAX_OBJECTS_PER_MESSAGE, VERDICT_S
from odf_protocol.smart_transfer.messages import (
    Answer,
    BlocksBatch,
    ObjectFile,
    ObjectsPushRequest,
    ObjectsPushResponse,
    PushBlocks,
    PushProgress,
    PushRequest,
    PushStrategy,
    Running,
    decode_message,
    encode_message,
)
from odf_protocol.smart_transfer.problems import Empty

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


PushClientEvent = Opened | Received | Closed | TimePassed | Uploaded | UploadsDone
PushClientEffect = Send | Close | Ended | Failed | Upload | Refused


class _State(Enum):
    OPENING = auto()
    OFFERING = auto()
    SENDING = auto()
    ASKING = auto()
    UPLOADING = auto()
    CONFIRMING = auto()
    DONE = auto()


_AWAITING: Final = {
    _State.OFFERING: "the answer to the offer",
    _State.SENDING: "the answer to the blocks",
    _State.ASKING: "the addresses of objects",
    _State.CONFIRMING: "the end of the push was confirmed",
}


class PushClient:
    """One conversation; ``Ended`` says that the other side has accepted."""

    def __init__(self, offer: PushRequest, batch: BlocksBatch, objects: Sequence[ObjectFile]) -> None:
        self._offer = offer
        self._batch: BlocksBatch | None = batch
        self._objects = tuple(objects)
        self._asked: tuple[ObjectFile, ...] = ()
        self._next = 0
        self._uploaded = 0
        self._state = _State.OPENING
        self.deadline_s: float | None = None

    def handle(self, event: PushClientEvent, now_s: float) -> tuple[PushClientEffect, ...]:
        """Give what follows from the event; ``now_s`` is in seconds of any clock that does not jump."""
        try:
            return self._handle(event, now_s)
        except OdfError as error:
            self._state, self.deadline_s = _State.DONE, None
            return (Close(NORMAL, ""), Failed(error))

    def _handle(self, event: PushClientEvent, now_s: float) -> tuple[PushClientEffect, ...]:
        match self._state, event:
            case _State.DONE, _:
                return ()
            case _State.OPENING, Opened():
                return self._say(_State.OFFERING, encode_message(self._offer), now_s + ANSWER_S)
            case _State.UPLOADING, Uploaded(count):
                self._uploaded = count
                return ()
            case _State.UPLOADING, UploadsDone():
                return self._complete(now_s)
            case _State.UPLOADING, Received(text):
                decode_message(text, Empty)
                progress = PushProgress(details=Running.of(self._uploaded))
                return (Send(encode_message(progress)),)
            case _State.CONFIRMING, Received(text):
                decode_message(text, Empty)
                self._state, self.deadline_s = _State.DONE, None
                return (Close(NORMAL, _FAREWELL), Ended())
            case _, Received(text) if self._state in _AWAITING:
                return self._read_answer(text, now_s)
            case _, Closed(code, reason) if code == SERVER_ERROR:
                return self._read_reason(event, reason)
            case _, Closed():
                raise disconnected(event, self._awaited())
            case _, TimePassed() if self._state in _AWAITING:
                raise stalled(self._awaited())
            case _, Received(text):
                raise out_of_turn(text[:80])
        raise ValueError(f"{type(event).__name__} while {self._state.name}")

    def _read_answer(self, text: bytes, now_s: float) -> tuple[PushClientEffect, ...]:
        answer = decode_message(text, ObjectsPushResponse if self._state is _State.ASKING else Answer)
        if answer.problem is not None:
            self._state, self.deadline_s = _State.DONE, None
            return (Close(NORMAL, ""), Refused(answer.problem))
        if self._state is _State.OFFERING and self._batch is not None:
            text, self._batch = encode_message(PushBlocks(new_blocks=self._batch)), None
            return self._say(_State.SENDING, text, now_s + ANSWER_S)
        if self._state is _State.SENDING:
            return self._ask_for_addresses(now_s)
        if not (isinstance(answer, ObjectsPushResponse) and answer.ok):
            raise MalformedError("answer", expected="addresses of objects", found="none")
        strategies = answer.ok.object_transfer_strategies
        self._check_strategies(strategies)
        self._state, self.deadline_s = _State.UPLOADING, None
        return (Upload(tuple(item for item in strategies if item.push_strategy == "HttpUpload")),)

    def _read_reason(self, event: Closed, reason: str) -> tuple[PushClientEffect, ...]:
        """Read a failure in the words of the answer that was awaited (SMART-6); never take it for a good answer."""
        try:
            problem = decode_message(reason.encode(), Answer).problem
        except MalformedError:
            problem = None
        if problem is not None and self._state in _AWAITING:
            self._state, self.deadline_s = _State.DONE, None
            return (Close(NORMAL, ""), Refused(problem))
        if self._state is _State.CONFIRMING:
            raise RejectedError("SMART-9 receiver-accepts", found=reason.strip('"') or "no reason given")
        raise disconnected(event, self._awaited())

    def _ask_for_addresses(self, now_s: float) -> tuple[PushClientEffect, ...]:
        self._asked = self._objects[self._next : self._next + MAX_OBJECTS_PER_MESSAGE]
        self._next += len(self._asked)
        request = ObjectsPushRequest(object_files=self._asked, is_truncated=self._has_more())
        return self._say(_State.ASKING, encode_message(request), now_s + ANSWER_S)

    def _complete(self, now_s: float) -> tuple[PushClientEffect, ...]:
        done = Send(encode_message(PushProgress(details="Complete")))
        if self._has_more():
            return (done, *self._ask_for_addresses(now_s))
        return (done, *self._say(_State.CONFIRMING, encode_message(Empty()), now_s + VERDICT_S))

    def _has_more(self) -> bool:
        return self._next < len(self._objects)

    def _check_strategies(self, strategies: Sequence[PushStrategy]) -> None:
        # Nothing may be uploaded that was not offered, and a skipped object is one that the receiver says it has.
        check_answered(self._asked, strategies)
        for item in strategies:
            if item.push_strategy == "HttpUpload" and item.upload_to is None:
                raise MalformedError("upload strategy", expected="an address", found="none")

    def _say(self, state: _State, text: bytes, deadline_s: float) -> tuple[PushClientEffect, ...]:
        self._state, self.deadline_s = state, deadline_s
        return (Send(text),)

    def _awaited(self) -> str:
        return _AWAITING.get(self._state, "the uploads were done")
