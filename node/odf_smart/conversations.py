"""A WebSocket and the role that decides on it: carries out what the role says, tells it what happens (SMART-1).

No pings are sent: readers of this protocol fail on them. That the other side lives is known by its answers, each of
which has a limit.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol

import aiohttp
from yarl import URL

from odf_node.adapters.http_client import HttpClient
from odf_node.byte_rate import ByteRate
from odf_node.ports.peer_client import ObjectKind
from odf_node.ports.peer_errors import PeerLiedError, PeerUnavailableError
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError, OdfError, RejectedError, UnavailableError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.limits import message_limit_s
from odf_smart_protocol.conversation import Close, Closed, ReceivedMessage, SendMessage, TimePassed
from odf_smart_protocol.limits import ANSWER_S, MAX_MESSAGE_BYTES
from odf_smart_protocol.messages import ObjectFile, ObjectType

CLOSE_S: Final = 5.0
"""How long a side that is done waits for the other's close. Source: the other implementation."""

PATIENCE_S: Final = ANSWER_S / 2
"""How long a message is held back for the sake of a rate: the other side waits for it."""

_CLOSING: Final = frozenset(
    {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
)


class Role(Protocol):
    """One of the four roles."""

    deadline_s: float | None

    def handle(self, event: Any, now_s: float) -> tuple[Any, ...]:
        """Give what follows from the event."""
        ...


class Socket(Protocol):
    """A WebSocket of either side."""

    @property
    def close_code(self) -> int | None:
        """How it was closed."""
        ...

    async def receive(self) -> aiohttp.WSMessage:
        """Wait for a message."""
        ...

    async def send_frame(self, message: bytes, opcode: aiohttp.WSMsgType) -> None:
        """SendMessage a message in one frame."""
        ...

    async def close(self, *, code: int, message: bytes) -> bool:
        """Close it."""
        ...


class Conversation:
    """One role on one socket; one task listens, others may tell."""

    def __init__(
        self,
        role: Role,
        socket: Socket,
        *,
        send_s: Callable[[int], float],
        send_rate: ByteRate,
        receive_rate: ByteRate,
    ) -> None:
        """Join them; ``send_s`` gives how long a message of so many bytes may take. The rates may be one."""
        self._role = role
        self._socket = socket
        self._send_s = send_s
        self._send_rate = send_rate
        self._receive_rate = receive_rate
        self._held_s = 0.0
        self._receiving: asyncio.Task[aiohttp.WSMessage] | None = None
        self._telling = asyncio.Lock()

    async def tell(self, event: Any) -> list[Any]:
        """Hand an event in; give the effects that are not about the socket."""
        async with self._telling:
            return await self._report(event)

    async def _report(self, event: Any) -> list[Any]:
        now_s = asyncio.get_running_loop().time()
        # Messages with blocks take a while to read and write.
        effects = await finish_in_thread(lambda: self._role.handle(event, now_s))
        left = []
        for effect in effects:
            match effect:
                case SendMessage(text):
                    # A message is one frame, which cannot be sent bit by bit.
                    await self._send_rate.spend(len(text), max_s=PATIENCE_S)
                    # What we hold back is not the other side's slowness.
                    self._held_s = asyncio.get_running_loop().time() - now_s
                    async with asyncio.timeout(self._send_s(len(text))):
                        await self._socket.send_frame(text, aiohttp.WSMsgType.TEXT)
                case Close(code, reason):
                    await self._socket.close(code=code, message=reason.encode())
                case _:
                    left.append(effect)
        return left

    async def listen(self) -> list[Any]:
        """Wait for what the other side does, or for the deadline; give the effects."""
        return await self.tell(await self._next_event(self._receive()))

    async def listen_beside(self, work: "asyncio.Task[None]") -> list[Any] | None:
        """As ``listen``; None as soon as ``work`` has ended, whatever comes meanwhile is kept for the next time."""
        receiving = self._receive()
        await asyncio.wait({receiving, work}, return_when=asyncio.FIRST_COMPLETED)
        return await self.tell(await self._next_event(receiving)) if receiving.done() else None

    async def stop(self) -> None:
        """Wait for nothing any more."""
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving])

    def _receive(self) -> "asyncio.Task[aiohttp.WSMessage]":
        if self._receiving is None:
            self._receiving = asyncio.create_task(self._socket.receive())
        return self._receiving

    async def _next_event(self, receiving: "asyncio.Task[aiohttp.WSMessage]") -> ReceivedMessage | Closed | TimePassed:
        try:
            deadline_s = self._role.deadline_s
            async with asyncio.timeout_at(None if deadline_s is None else deadline_s + self._held_s):
                message = await asyncio.shield(receiving)
        except TimeoutError:
            if not receiving.done():
                return TimePassed()
            raise
        self._receiving = None
        if message.type is aiohttp.WSMsgType.TEXT:
            text = message.data.encode()
            # It is here already, and paid for before it is answered.
            await self._receive_rate.spend(len(text), max_s=PATIENCE_S)
            return ReceivedMessage(text)
        if message.type in _CLOSING:
            is_close = message.type is aiohttp.WSMsgType.CLOSE
            reason = message.extra if is_close and isinstance(message.extra, str) else ""
            return Closed(message.data if is_close else self._socket.close_code, reason)
        raise MalformedError("message", expected="text", found=message.type.name)


VERSION_HEADER: Final = "x-odf-smtp-version"
VERSION: Final = "1"

OBJECT_TYPES: Final[Mapping[ObjectKind, ObjectType]] = {
    ObjectKind.DATA: "DataSlice",
    ObjectKind.CHECKPOINT: "Checkpoint",
}


async def open_conversation(stack: AsyncExitStack, client: HttpClient, url: URL, role: Role) -> Conversation:
    """Connect, and put a role on the connection; leaving the stack closes it.

    Raises:
        OdfError: As ``HttpClient.open_socket``.
    """
    socket = await stack.enter_async_context(
        client.open_socket(url, headers={VERSION_HEADER: VERSION}, max_message_bytes=MAX_MESSAGE_BYTES, close_s=CLOSE_S)
    )
    rate = client.settings.rate
    conversation = Conversation(role, socket, send_s=message_limit_s, send_rate=rate, receive_rate=rate)
    stack.push_async_callback(conversation.stop)
    return conversation


def object_file_of(item: WantedObject) -> ObjectFile:
    """Name an object in a message."""
    return ObjectFile(object_type=OBJECT_TYPES[item.kind], physical_hash=str(item.hash), size=item.size_bytes)


def name_peer(url: URL, error: OdfError) -> OdfError:
    """Say whose failure it is."""
    if isinstance(error, UnavailableError):
        return PeerUnavailableError(str(url), str(error))
    if isinstance(error, RejectedError):
        return PeerLiedError(str(url), error.rule, expected=error.expected, found=error.found)
    return error
