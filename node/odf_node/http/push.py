"""Routes of the push: begin, blocks, objects, commit, state (EX-17 to EX-22)."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from odf_node.adapters.staged_stream import StagedStream
from odf_node.byte_rate import ByteRate
from odf_node.http.addressed import get_hash, get_number
from odf_node.http.answers import answer_message
from odf_node.http.bodies import read_body, require_json, too_large
from odf_node.http.callers import get_caller, get_token, require_scope
from odf_node.http.problems import RETRY_AFTER_S, ProblemError
from odf_node.http.push_registry import get_registry
from odf_node.http.push_session import PushSession
from odf_node.http.route_tables import Route
from odf_node.http.served_node import LIVE, NODE
from odf_node.http.uploads import UPLOADS, Expected
from odf_node.ports.objects import StagedObject
from odf_node.records.errors import HomeFullError, ObjectNotFoundError
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.limits import (
    HELD_BACK_S,
    MAX_JSON_BYTES,
    MAX_PACK_BYTES,
    MAX_SIGNED_HEAD_BYTES,
    MIN_RATE_BYTES_PER_S,
    PUSH_WAIT_S,
    RATE_WINDOW_S,
    STALL_S,
)
from odf_protocol.exchange.messages import PushRequest, PushState, PushStatus, UploadProgress, decode_message
from odf_protocol.exchange.routes import PREFIX
from odf_protocol.http_signatures import CONTENT_DIGEST, content_digest
from odf_protocol.multihash import Multihash
from odf_protocol.names import DatasetName

RECEIVE_RATE: Final = web.AppKey("receive_rate", ByteRate)
"""The rate that all objects of pushes share; follows the configuration."""

_PUSHES_PATH: Final = f"/{PREFIX}/pushes"
_ONE_PATH: Final = f"{_PUSHES_PATH}/{{push}}"


async def _begin(request: web.Request) -> web.Response:
    registry = get_registry(request)
    token = get_token(request)
    require_json(request)
    asked = decode_message(await _read_signed(request, MAX_JSON_BYTES), PushRequest)
    DatasetName.parse(asked.name)
    if len(asked.signed_head or b"") > MAX_SIGNED_HEAD_BYTES:
        raise MalformedError("signed head", expected=f"at most {MAX_SIGNED_HEAD_BYTES} bytes", found="more")
    require_scope(token, asked.to_dataset_id())
    session = await registry.begin(token.id, asked, get_caller(request).reads)
    return await _answer_state(session, status=HTTPStatus.CREATED)


async def _get_state(request: web.Request) -> web.Response:
    session = await _get_session(request)
    wait_s = min(max(get_number(request, "wait_s", 0), 0), PUSH_WAIT_S)
    if wait_s and session.status is PushStatus.VERIFYING:
        await get_registry(request).wait(session, wait_s)
    return await _answer_state(session)


async def _abandon(request: web.Request) -> web.Response:
    session = await _get_session(request)
    if session.status is PushStatus.VERIFYING:
        raise ProblemError(HTTPStatus.CONFLICT, "state", "the push is being verified")
    await get_registry(request).forget(session, for_good=True)
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _add_blocks(request: web.Request) -> web.Response:
    session = await _get_receiving(request)
    after = get_number(request, "after", -1)
    with _only_pack(session):
        return await _take_pack(request, session, after)


@contextmanager
def _only_pack(session: PushSession) -> Iterator[None]:
    """Let one pack of a push be in memory at a time: nothing else needs a second one (EX-11)."""
    if session.takes_pack:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "busy",
            "blocks of this push are arriving; try again",
            headers={"Retry-After": RETRY_AFTER_S},
        )
    session.takes_pack = True
    try:
        yield
    finally:
        session.takes_pack = False


async def _take_pack(request: web.Request, session: PushSession, after: int) -> web.Response:
    body = await _read_signed(request, MAX_PACK_BYTES)
    rate = request.app[RECEIVE_RATE]
    rate.set(request.app[LIVE].configuration.limits.receive_bytes_per_second)
    await rate.pay(len(body), max_s=HELD_BACK_S)  # it is here already, and paid for before it is answered
    async with get_registry(request).alone(session):
        await finish_in_thread(lambda: session.add_pack(body, after=after))
        wanted = dict(session.wanted)
    await _require_room(request, session, wanted)
    return await _answer_state(session)


async def _require_room(request: web.Request, session: PushSession, wanted: Mapping[Multihash, WantedObject]) -> None:
    """Reject a push whose objects would not fit into what the operator gives (EX-57)."""
    live = request.app[LIVE]
    storage = live.configuration.storage
    expected = Expected(wanted, session.arrivals.count_arrived)
    lack = await request.app[UPLOADS].admit(session.push_id, expected, storage, request.app[NODE].objects)
    if not session.is_open:
        request.app[UPLOADS].forget(session.push_id)  # it ended while it was counted
    if lack is not None:
        live.metrics.turned_away.labels(reason=lack).inc()
        await get_registry(request).forget(session, for_good=True)
        raise ProblemError(
            HTTPStatus.INSUFFICIENT_STORAGE, "no-room", "this node has no room for the objects of this push"
        )


async def _get_progress(request: web.Request) -> web.Response:
    session = await _get_receiving(request)
    wanted, arrivals = _get_wanted(request, session), session.arrivals

    def kept() -> int:
        if arrivals.has(wanted.hash):
            return wanted.size_bytes
        with arrivals.resume(wanted.hash) as staged:
            return staged.size_bytes

    return answer_message(UploadProgress(position=await finish_in_thread(kept)))


async def _put_object(request: web.Request) -> web.Response:
    session = await _get_receiving(request)
    wanted = _get_wanted(request, session)
    position = get_number(request, "position", 0)
    arrivals = session.arrivals
    if await asyncio.to_thread(arrivals.has, wanted.hash):
        return answer_message(UploadProgress(position=wanted.size_bytes))
    registry = get_registry(request)
    staged = await finish_in_thread(lambda: arrivals.resume(wanted.hash))
    with staged:
        await _go_to(staged, position)
        # One object may take longer than a push may be idle.
        await receive_body(request, staged, wanted.size_bytes - position, lambda: registry.touch(session))
        if staged.size_bytes == wanted.size_bytes:
            # A mismatch throws the bytes away and is answered as rejected: this object's bytes are others.
            await finish_in_thread(lambda: arrivals.put(staged, wanted.hash))
        registry.touch(session)
        return answer_message(UploadProgress(position=staged.size_bytes), status=HTTPStatus.CREATED)


async def _commit(request: web.Request) -> web.Response:
    session = await _get_receiving(request)
    async with get_registry(request).alone(session):
        await asyncio.to_thread(session.check_complete)
        get_registry(request).verify(session)
    return await _answer_state(session, status=HTTPStatus.ACCEPTED)


async def _get_session(request: web.Request) -> PushSession:
    registry = get_registry(request)
    token = get_token(request)
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
        HomeFullError: There is no room; what arrived is thrown away, as it would take the room of everybody else.
    """
    if request.content_length is not None and request.content_length > left_bytes:
        raise too_large(left_bytes)
    try:
        await _receive(request, staged, left_bytes, on_data)
    except HomeFullError:
        await finish_in_thread(staged.restart)
        raise


async def _receive(request: web.Request, staged: StagedObject, left_bytes: int, on_data: Callable[[], None]) -> None:
    rate, live = request.app[RECEIVE_RATE], request.app[LIVE]
    started_at = (loop := asyncio.get_running_loop()).time()
    longest_s = RATE_WINDOW_S + left_bytes / MIN_RATE_BYTES_PER_S
    async with asyncio.timeout_at(started_at + longest_s) as limit, StagedStream(staged) as stream:
        while True:
            rate.set(live.configuration.limits.receive_bytes_per_second)
            paused_at = loop.time()
            await rate.wait()
            # What we hold back is not the pusher's slowness.
            longest_s += loop.time() - paused_at
            limit.reschedule(started_at + longest_s)
            async with asyncio.timeout(STALL_S):
                data = await request.content.readany()
            if not data:
                break
            rate.take(len(data))
            left_bytes -= len(data)
            if left_bytes < 0:
                raise too_large(left_bytes + len(data))
            await stream.write(data)
            on_data()
        await stream.finish()


async def _read_signed(request: web.Request, limit_bytes: int) -> bytes:
    body = await read_body(request, limit_bytes)
    # Of a signed request the signature covers this field: so it covers the body (EX-52).
    stated = request.headers.get(CONTENT_DIGEST)
    if stated is not None and stated != content_digest(body):
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed", f"expected {CONTENT_DIGEST} of the body, found another")
    return body


async def _answer_state(session: PushSession, *, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    state: PushState = await asyncio.to_thread(session.describe)
    return answer_message(state, status=status)


ROUTES: Final = (
    Route(
        "POST",
        _PUSHES_PATH,
        _begin,
        operation="""\
summary: Begin a push (EX-18).
security: [{token: []}]
requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/PushRequest'}}}}
responses:
  201: PushState
  400: Problem
  401: Problem
  403: Problem
  422: Problem
  503: Problem
""",
    ),
    Route(
        "GET",
        _ONE_PATH,
        _get_state,
        operation="""\
summary: How far the push is (EX-21).
parameters:
  - push
  - {name: wait_s, in: query, description: Wait so long for a verdict., schema: {type: integer,
        minimum: 0, maximum: 20}}
security: [{token: []}]
responses:
  200: PushState
  401: Problem
  404: Problem
""",
    ),
    Route(
        "DELETE",
        _ONE_PATH,
        _abandon,
        operation="""\
summary: Give up the push (EX-22).
parameters: [push]
security: [{token: []}]
responses:
  204: {description: It is forgotten.}
  401: Problem
  404: Problem
  409: Problem
""",
    ),
    Route(
        "POST",
        f"{_ONE_PATH}/blocks",
        _add_blocks,
        operation="""\
summary: Bring a pack of blocks (EX-19).
parameters:
  - push
  - {name: after, in: query, schema: {type: integer, minimum: -1, default: -1}}
security: [{token: []}]
requestBody: {required: true, content: {application/vnd.odf-node.pack+zstd: {}}}
responses:
  200: PushState
  400: Problem
  401: Problem
  404: Problem
  409: Problem
  413: Problem
  422: Problem
""",
    ),
    Route(
        "GET",
        f"{_ONE_PATH}/objects/{{hash}}",
        _get_progress,
        operation="""\
summary: How many bytes of the object are here (EX-20).
parameters: [push, hash]
security: [{token: []}]
responses:
  200: UploadProgress
  401: Problem
  404: Problem
  409: Problem
""",
    ),
    Route(
        "PUT",
        f"{_ONE_PATH}/objects/{{hash}}",
        _put_object,
        operation="""\
summary: Bring bytes of an object from a position on (EX-20).
parameters:
  - push
  - hash
  - {name: position, in: query, schema: {type: integer, minimum: 0, default: 0}}
security: [{token: []}]
requestBody: {required: true, content: {application/octet-stream: {}}}
responses:
  200: UploadProgress
  201: UploadProgress
  401: Problem
  404: Problem
  409: Problem
  413: Problem
  422: Problem
""",
    ),
    Route(
        "POST",
        f"{_ONE_PATH}/commit",
        _commit,
        operation="""\
summary: Have the push verified (EX-21).
parameters: [push]
security: [{token: []}]
responses:
  202: PushState
  401: Problem
  404: Problem
  409: Problem
  422: Problem
""",
    ),
)
