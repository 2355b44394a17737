"""ODF's Simple Transfer Protocol: what any ODF node can pull from (EX-1 to EX-6).

Source: ODF "Simple Transfer Protocol".
"""

import asyncio
from http import HTTPStatus
from typing import BinaryIO, Final

from aiohttp import web

from odf_node.http.addressed import explained_absence, get_followed, get_hash, get_readable, require_had
from odf_node.http.answers import CHANGING, IMMUTABLE, answer_bytes, answer_object
from odf_node.http.callers import get_token
from odf_node.http.problems import ProblemError
from odf_node.http.route_tables import Route
from odf_node.http.served_node import NODE
from odf_node.records.errors import BlockNotFoundError
from odf_protocol.exchange.routes import ObjectKind


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


_OBJECT: Final = """\
summary: An object that the dataset's chain names, or a part of it (EX-6).
parameters:
  - dataset
  - hash
  - {name: Range, in: header, schema: {type: string}}
  - {name: If-Range, in: header, schema: {type: string}}
  - {name: If-None-Match, in: header, schema: {type: string}}
responses:
  200: Bytes
  206: Bytes
  304: {description: The client has it.}
  400: Problem
  404: Problem
  416: Problem
  503: Problem
"""

ROUTES: Final = (
    Route(
        "GET",
        "/info",
        _get_info,
        operation="""\
summary: Whether paths begin with an account. Here they never do.
responses:
  200: MultiTenant
""",
    ),
    Route(
        "GET",
        "/platform/token/validate",
        _validate_token,
        operation="""\
summary: Whether a token of this node is good (SMART-12).
security: [{token: []}]
responses:
  200: {description: It is.}
  401: Problem
""",
    ),
    Route(
        "GET",
        "/datasets/{dataset}",
        _get_dataset,
        operation="""\
summary: The name of a dataset, by its identity.
parameters: [dataset]
responses:
  200: {description: A published dataset., content: {application/json: {schema: {type: object, required: [
              id, datasetName, owner], properties: {id: {$ref: '#/components/schemas/DatasetId'},
              datasetName: {$ref: '#/components/schemas/Name'}, owner: {type: 'null'}}}}}}
  404: Problem
""",
    ),
    Route(
        "GET",
        "/{dataset}/refs/{ref}",
        _get_ref,
        operation="""\
summary: The hash of the newest block, 69 bytes without a newline (EX-5).
parameters:
  - dataset
  - {name: ref, in: path, required: true, schema: {const: head}}
responses:
  200: {description: The hash., content: {text/plain: {schema: {$ref: '#/components/schemas/Hash'}}}}
  304: {description: The client has it.}
  404: Problem
""",
    ),
    Route(
        "GET",
        "/{dataset}/blocks/{hash}",
        _get_block,
        operation="""\
summary: A block as the bytes it was made in (EX-4).
parameters: [dataset, hash]
responses:
  200: Bytes
  304: {description: The client has it.}
  400: Problem
  404: Problem
""",
    ),
    *(Route("GET", f"/{{dataset}}/{kind.value}/{{hash}}", _get_object, operation=_OBJECT) for kind in ObjectKind),
)
