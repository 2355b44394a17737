"""WebSockets of the Smart Transfer Protocol: opened, driven by a role, ended (SMART-1, SMART-6, SMART-13)."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from aiohttp import WSCloseCode, web

from odf_node.http.access_log import request_id_of, share_of, write_line
from odf_node.http.problems import ProblemError, problem_of
from odf_node.http.push import RECEIVE_RATE
from odf_node.http.sending import SEND_RATE
from odf_node.http.served_node import LIVE
from odf_protocol.errors import OdfError
from odf_protocol.exchange.limits import message_limit_s
from odf_smart.conversations import CLOSE_S, VERSION, VERSION_HEADER, Conversation, Role
from odf_smart_protocol.conversation import ConversationFailed, Ended

SOCKETS: Final = web.AppKey("sockets", dict[Any, str])
"""Conversations that may be ended when the node stops, and whose they are."""

MAX_SOCKETS: Final = 32  # guess: each may hold a message of 16 MiB, and what it was made from
MAX_ADDRESS_SOCKETS: Final = 8  # guess: a quarter of all; a puller has one for each dataset that it pulls
FIRST_MESSAGE_S: Final = 10.0
"""Who opens a conversation has something to say.  # guess: a slow line"""


async def open_socket(request: web.Request, max_message_bytes: int) -> web.WebSocketResponse:
    """Turn the request into a WebSocket.

    Raises:
        ProblemError: It is no request for one, of another version, or one too many.
    """
    found = request.headers.get(VERSION_HEADER)
    if found != VERSION:
        detail = "Incompatible client version" if found else f"missing header {VERSION_HEADER}"
        # The other implementation shows this member of the answer.
        raise ProblemError(HTTPStatus.BAD_REQUEST, "version", detail)
    socket = web.WebSocketResponse(timeout=CLOSE_S, compress=False, max_msg_size=max_message_bytes)
    if not socket.can_prepare(request).ok:
        raise ProblemError(
            HTTPStatus.UPGRADE_REQUIRED, "upgrade", "this is a WebSocket", headers={"Upgrade": "websocket"}
        )
    sockets, share = request.app[SOCKETS], share_of(request.remote)
    if len(sockets) >= MAX_SOCKETS or Counter(sockets.values())[share] >= MAX_ADDRESS_SOCKETS:
        request.app[LIVE].metrics.turned_away.labels(reason="conversations").inc()
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "busy",
            f"{len(sockets)} conversations are running; try again",
            headers={"Retry-After": "30"},
        )
    sockets[socket] = share
    try:
        await socket.prepare(request)
    except BaseException:
        del sockets[socket]
        raise
    return socket


async def converse(
    request: web.Request, socket: web.WebSocketResponse, role: Role, carry_out: Callable[[Any], Awaitable[Any]]
) -> None:
    """Drive a role to its end: ``carry_out`` gives the event that answers an effect, or None.

    What it raises of our error tree ends the conversation in the words that the protocol has for it.
    """
    limits = request.app[LIVE].configuration.limits
    send_rate, receive_rate = request.app[SEND_RATE], request.app[RECEIVE_RATE]
    send_rate.set(limits.send_bytes_per_second)
    receive_rate.set(limits.receive_bytes_per_second)
    role.deadline_s = asyncio.get_running_loop().time() + FIRST_MESSAGE_S
    conversation = Conversation(role, socket, send_s=message_limit_s, send_rate=send_rate, receive_rate=receive_rate)
    try:
        effects = await conversation.listen()
        while not any(isinstance(effect, Ended | ConversationFailed) for effect in effects):
            answers = [answer for effect in effects if (answer := await _answer(carry_out, effect)) is not None]
            effects = [effect for answer in answers for effect in await conversation.tell(answer)]
            if not effects:
                effects = await conversation.listen()
        for effect in effects:
            if isinstance(effect, ConversationFailed):
                write_line(
                    "conversation-failed",
                    request_id=request_id_of(request),
                    error=type(effect.error).__name__,
                    text=str(effect.error),
                )
        await conversation.stop()
        await _wait_for_close(socket)
    except OdfError as error:
        write_line("conversation-failed", request_id=request_id_of(request), text=str(error))
    except (ConnectionError, TimeoutError):
        pass  # the client is gone, or reads nothing; it knows no more than that the conversation has no end
    finally:
        await conversation.stop()
        request.app[SOCKETS].pop(socket, None)
        if not socket.closed:
            await socket.close()


async def close_sockets(app: web.Application) -> None:
    """End all conversations that may be ended, when the node stops."""
    sockets = app[SOCKETS]
    for socket in tuple(sockets):
        await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the node stops")


async def _answer(carry_out: Callable[[Any], Awaitable[Any]], effect: Any) -> Any:
    try:
        return await carry_out(effect)
    except OdfError as error:
        return ConversationFailed(_without_our_insides(error))


def _without_our_insides(error: OdfError) -> OdfError:
    text = problem_of(error).detail
    if text != str(error):
        return OdfError(text)
    return error


async def _wait_for_close(socket: web.WebSocketResponse) -> None:
    """Let the other side close first, for a while: whoever closes early may cut off the last message."""
    try:
        async with asyncio.timeout(CLOSE_S):
            while not socket.closed:
                await socket.receive()
    except TimeoutError:
        pass
