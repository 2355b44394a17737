"""Routes of the push: begin, blocks, objects, commit, state (EX-17 to EX-22)."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from odf_node.adapters.staged_stream import StagedStream
from odf_node.configuration import Storage
from odf_node.exchange.limits import (
    MAX_JSON_BYTES,
    MAX_PACK_BYTES,
    MAX_SIGNED_HEAD_BYTES,
    MIN_RATE_BYTES_PER_S,
    PUSH_WAIT_S,
    RATE_WINDOW_S,
    STALL_S,
    message_limit_s,
)
from odf_node.exchange.messages import PushRequest, PushState, PushStatus, UploadProgress, decode_message
from odf_node.exchange.routes import PREFIX
from odf_node.http.addressed import get_hash, get_number
from odf_node.http.answers import answer_message
from odf_node.http.bearer import get_token, require_scope
from odf_node.http.live import LIVE
from odf_node.http.problems import ProblemError
from odf_node.http.push_registry import get_registry
from odf_node.http.push_session import PushSession
from odf_node.http.served_node import NODE
from odf_node.ports.errors import ObjectNotFoundError
from odf_node.ports.objects import ObjectStore, StagedObject
from odf_node.ports.peer_client import WantedObject
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError
from odf_protocol.http_signatures import CONTENT_DIGEST, content_digest
from odf_protocol.names import DatasetName

_PUSHES_PATH: Final = f"/{PREFIX}/pushes"


def add_routes(app: web.Application) -> None:
    """Register the routes."""
    one = f"{_PUSHES_PATH}/{{push}}"
    app.router.add_post(_PUSHES_PATH, _begin)
    app.router.add_get(one, _get_state)
    app.router.add_delete(one, _abandon)
    app.router.add_post(f"{one}/blocks", _add_blocks)
    app.router.add_get(f"{one}/objects/{{hash}}", _get_progress)
    app.router.add_put(f"{one}/objects/{{hash}}", _put_object)
    app.router.add_post(f"{one}/commit", _commit)


async def _begin(request: web.Request) -> web.Response:
    registry = get_registry(request)
    token = await get_token(request)
    asked = decode_message(await _read_body(request, MAX_JSON_BYTES), PushRequest)
    DatasetName.parse(asked.name)
    if len(asked.signed_head or b"") > MAX_SIGNED_HEAD_BYTES:
        raise MalformedError("signed head", expected=f"at most {MAX_SIGNED_HEAD_BYTES} bytes", found="more")
    require_scope(token, asked.to_dataset_id())
    session = await registry.begin(token.id, asked)
    return await _answer_state(request, session, status=HTTPStatus.CREATED)


async def _get_state(request: web.Request) -> web.Response:
    session = await _get_session(request)
    wait_s = min(max(get_number(request, "wait_s", 0), 0), PUSH_WAIT_S)
    if wait_s and session.status is PushStatus.VERIFYING:
        await get_registry(request).wait(session, wait_s)
    return await _answer_state(request, session)


async def _abandon(request: web.Request) -> web.Response:
    session = await _get_session(request)
    if session.status is PushStatus.VERIFYING:
        raise ProblemError(HTTPStatus.CONFLICT, "state", "the push is being verified")
    await get_registry(request).forget(session)
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _add_blocks(request: web.Request) -> web.Response:
    session = await _get_receiving(request)
    after = get_number(request, "after", -1)
    body = await _read_body(request, MAX_PACK_BYTES)
    async with get_registry(request).alone(session):
        await finish_in_thread(lambda: session.add_pack(body, after=after))
    await _require_room(request, session)
    return await _answer_state(request, session)


async def _require_room(request: web.Request, session: PushSession) -> None:
    """Refuse a push whose objects would not fit into what the operator gives (EX-57)."""
    storage, node = request.app[LIVE].configuration.storage, request.app[NODE]
    if not storage.quota_bytes and not storage.least_free_bytes:
        return

    def find() -> str | None:
        missing_bytes = sum(item.size_bytes for item in session.list_missing(node.objects))
        return find_lack(storage, node.objects, missing_bytes)

    lack = await asyncio.to_thread(find)
    if lack is not None:
        request.app[LIVE].metrics.turned_away.add(reason=lack)
        await get_registry(request).forget(session)
        raise ProblemError(
            HTTPStatus.INSUFFICIENT_STORAGE, "no-room", "this node has no room for the objects of this push"
        )


def find_lack(storage: Storage, objects: ObjectStore, missing_bytes: int) -> str | None:
    """Say what there is not enough of for so many bytes of objects more: ``quota``, ``disk``, or None."""
    if not storage.quota_bytes and not storage.least_free_bytes:
        return None
    room = objects.measure()
    if storage.quota_bytes and room.used_bytes + missing_bytes > storage.quota_bytes:
        return "quota"
    return "disk" if room.free_bytes - missing_bytes < storage.least_free_bytes else None


async def _get_progress(request: web.Request) -> web.Response:
    wanted = _get_wanted(request, await _get_receiving(request))
    objects = request.app[NODE].objects

    def kept() -> int:
        if objects.has(wanted.hash):
            return wanted.size_bytes
        with objects.resume(wanted.hash) as staged:
            return staged.size_bytes

    return answer_message(UploadProgress(position=await finish_in_thread(kept)))


async def _put_object(request: web.Request) -> web.Response:
    session = await _get_receiving(request)
    wanted = _get_wanted(request, session)
    position = get_number(request, "position", 0)
    objects = request.app[NODE].objects
    if await asyncio.to_thread(objects.has, wanted.hash):
        return answer_message(UploadProgress(position=wanted.size_bytes))
    staged = await finish_in_thread(lambda: objects.resume(wanted.hash))
    with staged:
        await _go_to(staged, position)
        await receive_body(request, staged, wanted.size_bytes - position)
        if staged.size_bytes == wanted.size_bytes:
            # A mismatch throws the bytes away and is answered as refused: this object's bytes are others.
            await finish_in_thread(lambda: objects.put(staged, wanted.hash))
        get_registry(request).touch(session)
        return answer_message(UploadProgress(position=staged.size_bytes), status=HTTPStatus.CREATED)


async def _commit(request: web.Request) -> web.Response:
    session = await _get_receiving(request)
    objects = request.app[NODE].objects
    async with get_registry(request).alone(session):
        await asyncio.to_thread(session.check_complete, objects)
        get_registry(request).verify(session)
    return await _answer_state(request, session, status=HTTPStatus.ACCEPTED)


async def _get_session(request: web.Request) -> PushSession:
    registry = get_registry(request)
    token = await get_token(request)
    session = registry.find(request.match_info["push"], token.id)
    if session is None:
        raise ProblemError(HTTPStatus.NOT_FOUND, "not-found", "there is no such push; begin it again")
    # Tokens lose scopes and are revoked while a push runs.
    require_scope(token, session.request.to_dataset_id())
    registry.touch(session)
    return session


async def _get_receiving(request: web.Request) -> PushSession:
    session = await _get_session(request)
    if session.status is not PushStatus.RECEIVING:
        raise ProblemError(HTTPStatus.CONFLICT, "state", f"the push is {session.status.value}")
    return session


def _get_wanted(request: web.Request, session: PushSession) -> WantedObject:
    object_hash = get_hash(request)
    wanted = session.wanted.get(object_hash)
    if wanted is None:
        raise ObjectNotFoundError(object_hash)
    return wanted


async def _go_to(staged: StagedObject, position: int) -> None:
    if position == 0 and staged.size_bytes:
        await finish_in_thread(staged.restart)
    if position != staged.size_bytes:
        raise ProblemError(
            HTTPStatus.CONFLICT,
            "position",
            f"expected bytes from {staged.size_bytes}, found from {position}",
            position=staged.size_bytes,
        )


async def receive_body(
    request: web.Request, staged: StagedObject, left_bytes: int, on_data: Callable[[], None] = lambda: None
) -> None:
    """Take the body into the staged object; one that is longer than ``left_bytes`` is cut off at once (EX-12).

    Raises:
        ProblemError: It is longer.
        TimeoutError: It stalls, or is slower than the least rate.
    """
    if request.content_length is not None and request.content_length > left_bytes:
        raise _too_large(left_bytes)
    async with asyncio.timeout(RATE_WINDOW_S + left_bytes / MIN_RATE_BYTES_PER_S), StagedStream(staged) as stream:
        while True:
            async with asyncio.timeout(STALL_S):
                data = await request.content.readany()
            if not data:
                break
            left_bytes -= len(data)
            if left_bytes < 0:
                raise _too_large(left_bytes + len(data))
            await stream.write(data)
            on_data()
        await stream.finish()


async def _read_body(request: web.Request, limit_bytes: int) -> bytes:
    if (request.content_length or 0) > limit_bytes:
        raise _too_large(limit_bytes)
    parts: list[bytes] = []
    size_bytes = 0
    async with asyncio.timeout(message_limit_s(limit_bytes)):
        while data := await request.content.readany():
            size_bytes += len(data)
            if size_bytes > limit_bytes:
                raise _too_large(limit_bytes)
            parts.append(data)
    body = b"".join(parts)
    # Of a signed request the signature covers this field: so it covers the body (EX-52).
    said = request.headers.get(CONTENT_DIGEST)
    if said is not None and said != content_digest(body):
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed", f"expected {CONTENT_DIGEST} of the body, found another")
    return body


async def _answer_state(
    request: web.Request, session: PushSession, *, status: HTTPStatus = HTTPStatus.OK
) -> web.Response:
    state: PushState = await asyncio.to_thread(session.describe, request.app[NODE].objects)
    return answer_message(state, status=status)


def _too_large(limit_bytes: int) -> ProblemError:
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"expected at most {limit_bytes} bytes more")
