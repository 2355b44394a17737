"""ODF's Simple Transfer Protocol: what any ODF node can pull from (EX-1 to EX-6).

Source: ODF "Simple Transfer Protocol".
"""

import asyncio
from http import HTTPStatus
from typing import BinaryIO

from aiohttp import web

from odf_node.http.addressed import explained_absence, get_followed, get_hash, get_readable, require_had
from odf_node.http.answers import CHANGING, IMMUTABLE, answer_bytes, answer_object
from odf_node.http.callers import get_token
from odf_node.http.problems import ProblemError
from odf_node.http.served_node import NODE
from odf_node.records.errors import BlockNotFoundError
from odf_protocol.exchange.routes import ObjectKind


def add_routes(app: web.Application) -> None:
    """Register the routes."""
    app.router.add_get("/info", _get_info)
    app.router.add_get("/platform/token/validate", _validate_token)
    app.router.add_get("/datasets/{dataset}", _get_dataset)
    app.router.add_get("/{dataset}/refs/{ref}", _get_ref)
    app.router.add_get("/{dataset}/blocks/{hash}", _get_block)
    for kind in ObjectKind:
        app.router.add_get(f"/{{dataset}}/{kind.value}/{{hash}}", _get_object)


async def _get_info(_request: web.Request) -> web.Response:
    return web.json_response({"isMultiTenant": False})


async def _validate_token(request: web.Request) -> web.Response:
    get_token(request)
    return web.Response()


async def _get_dataset(request: web.Request) -> web.Response:
    record = await get_readable(request)
    return web.json_response({"id": str(record.id), "datasetName": record.name, "owner": None})


async def _get_ref(request: web.Request) -> web.Response:
    record = await get_followed(request)
    if request.match_info["ref"] != "head":
        raise ProblemError(HTTPStatus.NOT_FOUND, "not-found", "the only reference is 'head'")
    # No newline: readers take the text as it is.
    text = str(record.head.hash)
    return answer_bytes(request, text.encode(), etag=text, cache=CHANGING, content_type="text/plain")


async def _get_block(request: web.Request) -> web.Response:
    record = await get_readable(request)
    block_hash = get_hash(request)
    block = await asyncio.to_thread(request.app[NODE].store.find_block, record.id, block_hash)
    if block is None:
        raise BlockNotFoundError(record.id, block_hash)
    return answer_bytes(request, block.raw, etag=str(block_hash), cache=IMMUTABLE)


async def _get_object(request: web.Request) -> web.StreamResponse:
    record = await get_readable(request)
    object_hash = get_hash(request)
    node = request.app[NODE]

    def find() -> tuple[int, BinaryIO]:
        with explained_absence(node, record, object_hash):
            require_had(node, record, object_hash)
            return node.objects.get_size(object_hash), node.objects.open(object_hash)

    # One way to a thread and back: with small objects it costs more than what is done there.
    size_bytes, file = await asyncio.to_thread(find)
    node.store.access.note_read(record, what="file")
    return await answer_object(request, file, size_bytes=size_bytes, etag=str(object_hash))
