"""The routes to which others push by the Smart Transfer Protocol: conversation and uploads (SMART-10)."""

import asyncio
import secrets
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from odf_node.http.access_log import write_line
from odf_node.http.addressed import find_readable, get_hash
from odf_node.http.callers import get_caller, get_token, require_scope, require_some_push
from odf_node.http.problems import ProblemError
from odf_node.http.push import receive_body
from odf_node.http.route_tables import Route
from odf_node.http.served_node import LIVE, NODE
from odf_node.http.uploads import UPLOADS, Expected
from odf_node.ports.peer_client import PeerHead
from odf_node.records.access import REPLACE_SCOPE, AccessToken, ReadGrants
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import ObjectNotFoundError
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.exchange.routes import PREFIX
from odf_protocol.multihash import Multihash
from odf_protocol.names import DatasetName
from odf_smart.pull_route import transfer_headers
from odf_smart.served_sockets import converse, open_socket
from odf_smart.upload import SmartUpload
from odf_smart_protocol.limits import MAX_MESSAGE_BYTES
from odf_smart_protocol.messages import ObjectFile, PushStrategy, SmartPushRequest, TransferUrl
from odf_smart_protocol.problems import (
    Empty,
    InvalidHead,
    NameCollision,
    RefCollision,
    TransferProblem,
)
from odf_smart_protocol.push_server import (
    Agreed,
    CommitTransfer,
    Declined,
    Judge,
    PlanUploads,
    PushServer,
    TakeBlocks,
    UploadsPlanned,
)

_UPLOADS_PATH: Final = f"{PREFIX}/uploads"


@dataclass(slots=True)
class _Push:
    """One conversation as it goes on."""

    role: PushServer
    token: AccessToken
    reads: ReadGrants
    name: str
    record: DatasetRecord | None
    upload: SmartUpload | None = None
    is_forced: bool = False
    is_public: bool = False


_PUSHES = web.AppKey("smart-pushes", dict[str, _Push])


def prepare_app(app: web.Application) -> None:
    """Put into the application what the handlers find there."""
    app[_PUSHES] = {}


async def _push(request: web.Request) -> web.StreamResponse:
    receiver = request.app[NODE].pushes
    if receiver is None:
        raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", "this node takes no pushes")
    token = get_token(request)
    require_some_push(token)
    try:
        name = DatasetName.parse(request.match_info["dataset"]).text
    except MalformedError as error:
        raise ProblemError(HTTPStatus.NOT_FOUND, "not-found", "there can be no dataset of this name") from error
    record = await find_readable(request)
    if record is not None:
        require_scope(token, record.id)
    socket = await open_socket(request, MAX_MESSAGE_BYTES)
    role = PushServer(asyncio.get_running_loop().time())
    push = _Push(role, token, get_caller(request).reads, name if record is None else record.name, record)
    try:
        await converse(request, socket, role, lambda effect: _carry_out(request, push, effect))
    finally:
        if push.upload is not None:
            request.app[_PUSHES].pop(push.upload.upload_id, None)
            request.app[UPLOADS].forget(push.upload.upload_id)
            await finish_in_thread(push.upload.close)
    return socket


async def _carry_out(
    request: web.Request, push: _Push, effect: Judge | TakeBlocks | PlanUploads | CommitTransfer
) -> Any:
    match effect:
        case Judge(asked):
            return _judge(push, asked)
        case TakeBlocks(batch):
            node = request.app[NODE]
            push.upload = await finish_in_thread(
                lambda: SmartUpload.begin(
                    secrets.token_urlsafe(16),
                    push.token.id,
                    push.name,
                    push.record,
                    objects=node.objects,
                    spool_folder=node.spool_folder,
                )
            )
            upload = push.upload
            request.app[_PUSHES][upload.upload_id] = push
            await finish_in_thread(lambda: upload.take(batch, may_replace=push.is_forced))
            return await _consider(request, push, upload)
        case PlanUploads(objects):
            return await finish_in_thread(lambda: _plan_uploads(request, push, objects))
        case CommitTransfer():
            return await _commit(request, push)


def _judge(push: _Push, asked: SmartPushRequest) -> Agreed | Declined:
    push.is_forced = asked.force_update_if_diverged
    push.is_public = asked.visibility_for_created_dataset == "Public"
    head = None if push.record is None else str(push.record.head.hash)
    stated = None if asked.current_head is None else str(Multihash.parse(asked.current_head))
    if stated != head:
        return Declined(TransferProblem(invalid_head=InvalidHead(actual_head=stated, expected_head=head)))
    if not asked.transfer_plan.num_blocks:
        raise RejectedError("SMART-10 a-push-has-blocks", expected="at least 1", found=0)
    return Agreed()


async def _consider(request: web.Request, push: _Push, upload: SmartUpload) -> Agreed | Declined:
    """Find out what can never be accepted, before objects are sent."""
    node = request.app[NODE]
    assert node.pushes is not None
    assert upload.dataset_id is not None
    assert upload.last is not None
    if push.record is not None and upload.dataset_id != push.record.id:
        return Declined(TransferProblem(seed_block_overwrite_restricted=Empty()))
    if f"push:{upload.dataset_id}" not in push.token.scopes and "push" not in push.token.scopes:
        raise RejectedError("EX-17 token", expected=f"one that allows {upload.dataset_id}", found="another")
    if push.record is None:
        if await asyncio.to_thread(node.store.find_dataset, upload.dataset_id) is not None:
            return Declined(TransferProblem(ref_collision=RefCollision(dataset_id=str(upload.dataset_id))))
        if await find_readable(request) is not None:
            return Declined(TransferProblem(name_collision=NameCollision(dataset_alias=push.name)))
    await finish_in_thread(lambda: upload.open_arrivals(node.store, node.objects))
    await _require_room(request, upload)
    proposed = PeerHead(head=upload.last, name=push.name, dataset_id=upload.dataset_id)
    await node.pushes.consider(proposed, actor=push.token.id, reads=push.reads)
    return Agreed()


async def _require_room(request: web.Request, upload: SmartUpload) -> None:
    live, objects = request.app[LIVE], request.app[NODE].objects
    expected = Expected(upload.wanted, upload.arrivals.count_arrived)
    lack = await request.app[UPLOADS].admit(upload.upload_id, expected, live.configuration.storage, objects)
    if lack is not None:
        live.metrics.turned_away.labels(reason=lack).inc()
        raise RejectedError("EX-57 storage", found="no room for the objects of this push")


def _plan_uploads(request: web.Request, push: _Push, objects: tuple[ObjectFile, ...]) -> UploadsPlanned:
    assert push.upload is not None
    arrivals, base = push.upload.arrivals, request.url.origin() / _UPLOADS_PATH / push.upload.upload_id
    headers = transfer_headers(request)
    found = []
    for item in objects:
        if item.hash not in push.upload.wanted:
            raise ObjectNotFoundError(item.hash)
        if arrivals.has(item.hash):
            found.append(PushStrategy(object_file=item, push_strategy="SkipUpload"))
            continue
        url = TransferUrl(url=str(base / str(item.hash)), headers=headers)
        found.append(PushStrategy(object_file=item, push_strategy="HttpUpload", upload_to=url))
    return UploadsPlanned(found)


async def _commit(request: web.Request, push: _Push) -> Agreed:
    node, upload = request.app[NODE], push.upload
    assert upload is not None
    assert node.pushes is not None
    await asyncio.to_thread(upload.check_complete)
    try:
        async with node.verifications.ask(push.token.id):
            record = await node.pushes.receive(
                upload,
                actor=push.token.id,
                reads=push.reads,
                published=push.is_public,
                force=push.is_forced and REPLACE_SCOPE in push.token.scopes,
            )
    except (RejectedError, MalformedError, UnsupportedError):
        await finish_in_thread(upload.arrivals.drop)
        raise
    await finish_in_thread(upload.arrivals.drop)
    if record.head != upload.last:
        # What is held here goes on behind what was pushed: nothing is wrong, and nothing was taken.
        raise RejectedError("ACCEPT-10 histories-are-not-shortened", expected=record.head, found=upload.last)
    write_line("push", push_id=upload.upload_id, dataset=str(record.id), status="accepted")
    return Agreed()


async def _put_object(request: web.Request) -> web.Response:
    token = get_token(request)
    push = request.app[_PUSHES].get(request.match_info["upload"])
    if push is None or push.upload is None or push.token.id != token.id:
        raise ProblemError(HTTPStatus.NOT_FOUND, "not-found", "there is no such push")
    object_hash = get_hash(request)
    wanted = push.upload.wanted.get(object_hash)
    if wanted is None:
        raise ObjectNotFoundError(object_hash)
    if request.content_length != wanted.size_bytes:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST,
            "size",
            f"expected Content-Length {wanted.size_bytes}, found {request.content_length}",
        )
    arrivals = push.upload.arrivals
    if await asyncio.to_thread(arrivals.has, object_hash):
        return web.Response()
    staged = await finish_in_thread(lambda: arrivals.resume(object_hash))
    with staged:
        if staged.size_bytes:
            await finish_in_thread(staged.restart)
        await receive_body(request, staged, wanted.size_bytes, lambda: _touch(push))
        await finish_in_thread(lambda: arrivals.put(staged, object_hash))
    _touch(push)
    return web.Response(status=HTTPStatus.CREATED)


def _touch(push: _Push) -> None:
    push.role.touch(asyncio.get_running_loop().time())


ROUTES: Final = (
    Route(
        "GET",
        "/{dataset}/push",
        _push,
        operation="""\
summary: A WebSocket to push by ODF's Smart Transfer Protocol (spec/plug-ins/smart-transfer.md).
parameters:
  - dataset
  - {name: x-odf-smtp-version, in: header, required: true, schema: {const: '1'}}
security: [{token: []}]
responses:
  101: {description: The conversation begins.}
  400: Problem
  401: Problem
  403: Problem
  404: Problem
  426: Problem
  503: Problem
""",
    ),
    Route(
        "PUT",
        f"/{_UPLOADS_PATH}/{{upload}}/{{hash}}",
        _put_object,
        operation="""\
summary: An object of a push by the Smart Transfer Protocol, at the address that its conversation named (SMART-10).
parameters:
  - {name: upload, in: path, required: true, schema: {type: string}}
  - hash
security: [{token: []}]
requestBody: {required: true, content: {application/octet-stream: {}}}
responses:
  200: {description: It came in this push already, or the dataset has it.: null}
  201: {description: It is here now.}
  400: Problem
  401: Problem
  404: Problem
  422: Problem
""",
    ),
)
