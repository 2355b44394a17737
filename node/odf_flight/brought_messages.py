"""What a client of the port brings, looked at as far as it says whether a message is packed.

The library unpacks messages of gRPC before anybody is asked for a token, and without a bound: half a megabyte that
stands for half a gigabyte took three of memory. Clients of Flight pack nothing unless they are told to, so whoever does
is ended at the door, where bytes are counted as they come.

Source: clause FLIGHT-14 in ``spec/plug-ins/flight-sql.md``; RFC 9113 sections 3.4, 4.1, 6.1 and 6.4; gRPC over
HTTP/2, "Length-Prefixed-Message".
"""

from dataclasses import dataclass, field
from typing import Final

MAX_STREAMS: Final = 1_000  # guess: of one connection, with a message that is not whole; fewer calls are let in
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEAD_BYTES: Final = 9
MESSAGE_HEAD_BYTES: Final = 5
DATA: Final = 0x0
RST_STREAM: Final = 0x3
END_STREAM: Final = 0x1
PADDED: Final = 0x8


@dataclass(slots=True)
class _Message:
    """How far a message of a stream has come."""

    head: bytearray = field(default_factory=bytearray)
    left_bytes: int = 0


@dataclass(slots=True)
class _Frame:
    """How far a frame has come; of ``DATA`` the padding is told apart."""

    kind: int
    flags: int
    stream: int
    left_bytes: int
    data_left_bytes: int
    is_padding_reported: bool


class BroughtMessages:
    """Follows one connection."""

    def __init__(self) -> None:
        self._preface_left = PREFACE
        self._head = bytearray()
        self._frame: _Frame | None = None
        self._messages: dict[int, _Message] = {}

    def find_fault(self, chunk: bytes) -> str | None:
        """Say why a connection should end at these bytes, which come after those before; None: it may go on."""
        rest = memoryview(chunk)
        while rest:
            if self._preface_left:
                count = min(len(rest), len(self._preface_left))
                if rest[:count] != self._preface_left[:count]:
                    return "no HTTP/2"
                self._preface_left = self._preface_left[count:]
            elif self._frame is None:
                count = min(len(rest), FRAME_HEAD_BYTES - len(self._head))
                self._head += rest[:count]
                if len(self._head) == FRAME_HEAD_BYTES:
                    self._begin_frame()
            else:
                count = min(len(rest), self._frame.left_bytes)
                if (fault := self._find_fault_in(self._frame, rest[:count])) is not None:
                    return fault
                self._frame.left_bytes -= count
            rest = rest[count:]
            if self._frame is not None and not self._frame.left_bytes:
                self._end_frame(self._frame)
        return None

    def _begin_frame(self) -> None:
        size, kind, flags = int.from_bytes(self._head[:3]), self._head[3], self._head[4]
        stream = int.from_bytes(self._head[5:]) & 0x7FFFFFFF
        self._head.clear()
        self._frame = _Frame(kind, flags, stream, size, size, is_padding_reported=not flags & PADDED)

    def _end_frame(self, frame: _Frame) -> None:
        if frame.kind == RST_STREAM or (frame.kind == DATA and frame.flags & END_STREAM):
            self._messages.pop(frame.stream, None)
        self._frame = None

    def _find_fault_in(self, frame: _Frame, part: memoryview) -> str | None:
        if frame.kind != DATA:
            return None
        if not frame.is_padding_reported:
            frame.is_padding_reported = True
            frame.data_left_bytes -= 1 + part[0]
            part = part[1:]
        data = part[: max(0, frame.data_left_bytes)]
        frame.data_left_bytes -= len(data)
        return self._find_fault_of(frame.stream, data)

    def _find_fault_of(self, stream: int, data: memoryview) -> str | None:
        message = self._messages.setdefault(stream, _Message())
        while data:
            if message.left_bytes:
                count = min(len(data), message.left_bytes)
                message.left_bytes -= count
            else:
                count = min(len(data), MESSAGE_HEAD_BYTES - len(message.head))
                message.head += data[:count]
                if message.head[0]:
                    return "packed messages"
                if len(message.head) == MESSAGE_HEAD_BYTES:
                    message.left_bytes = int.from_bytes(message.head[1:])
                    message.head.clear()
            data = data[count:]
        if not (message.left_bytes or message.head):
            del self._messages[stream]
        return "streams" if len(self._messages) > MAX_STREAMS else None
