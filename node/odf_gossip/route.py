"""The route of gossip: one request in, one reply out (GOSSIP-49 to GOSSIP-51)."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from aiohttp import web

from odf_gossip.ports import GossipReceiver
from odf_gossip_protocol.messages import MAX_MESSAGE_BYTES
from odf_node.composition import Node
from odf_node.http.bodies import require_json
from odf_node.http.problems import ProblemError
from odf_node.http.route_tables import Route, RouteTable
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.limits import message_limit_s
from odf_protocol.exchange.messages import JSON_MEDIA_TYPE
from odf_protocol.exchange.routes import gossip_path
from odf_protocol.peer_addresses import bucket_of_ip

_RETRY_AFTER_S: Final = "10"
_UNKNOWN: Final = "unknown"
"""The bucket of senders whose address the transport does not say."""


@dataclass
class Answering:
    """Who answers what comes by the route; none while this node does not gossip."""

    receiver: GossipReceiver | None = None


ANSWERING: Final = web.AppKey("gossip", Answering)


def prepare(app: web.Application, _node: Node) -> None:
    """Put the place for the receiver into the application."""
    app[ANSWERING] = Answering()


async def _take_message(request: web.Request) -> web.Response:
    receiver = request.app[ANSWERING].receiver
    if receiver is None:
        raise ProblemError(HTTPStatus.NOT_FOUND, "not-found", "this node does not gossip")
    require_json(request)
    reply = receiver.receive(_bucket_of(request.remote), await _read_message(request))
    if reply is None:
        raise ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too-many-requests",
            "too much gossip from this network; come back later",
            headers={"Retry-After": _RETRY_AFTER_S},
        )
    return web.Response(body=reply, content_type=JSON_MEDIA_TYPE, headers={"Cache-Control": "no-store"})


async def _read_message(request: web.Request) -> bytes:
    if (request.content_length or 0) > MAX_MESSAGE_BYTES:
        raise _too_large()
    body = bytearray()
    async with asyncio.timeout(message_limit_s(MAX_MESSAGE_BYTES, 10.0)):
        while part := await request.content.readany():
            body += part
            if len(body) > MAX_MESSAGE_BYTES:
                raise _too_large()
    return bytes(body)


def _too_large() -> MalformedError:
    return MalformedError("gossip request", expected=f"at most {MAX_MESSAGE_BYTES} bytes", found="more")


def _bucket_of(remote: str | None) -> str:
    try:
        return bucket_of_ip(ip_address((remote or "").partition("%")[0]))
    except ValueError:
        return _UNKNOWN


ROUTES: Final = RouteTable(
    (
        Route(
            "POST",
            f"/{gossip_path()}",
            _take_message,
            operation="""\
summary: A message of gossip and its reply (GOSSIP-23, GOSSIP-49 in ../plug-ins/gossip.md).
requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/GossipRequest'}}}}
responses:
  200: {description: The reply., content: {application/json: {schema: {$ref: '#/components/schemas/GossipReply'}}}}
  400: Problem
  404: Problem
  429: Problem
""",
        ),
    ),
    prepare,
)
"""Found by its entry point in the group ``odf_node.routes``."""
