"""Files of tables, as a server of S3 gives them: slices as they are, and what is made from a chain.

Source: clauses ICEBERG-13 to ICEBERG-16 in ``spec/plug-ins/iceberg.md``; Amazon S3 API reference, "GetObject" and
"HeadObject".
"""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import wraps
from http import HTTPStatus
from typing import BinaryIO, Final
from xml.sax.saxutils import escape

from aiohttp import web

from odf_iceberg.credentials import ALGORITHM, SignatureError, SignedRequest
from odf_iceberg.service import SERVICE
from odf_iceberg.tables import BUCKET
from odf_node.http.addressed import explained_absence, require_had
from odf_node.http.answers import answer_object
from odf_node.http.callers import get_caller
from odf_node.http.problems import ProblemError, problem_of
from odf_node.http.route_tables import Route
from odf_node.http.sending import wait_to_send
from odf_node.http.served_node import LIVE, NODE
from odf_node.ports.access import calling, get_requester
from odf_node.records.access import ReadGrants, TokenState, read_grants
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import ObjectNotFoundError
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, NotFoundError, OdfError, UnsupportedError
from odf_protocol.exchange.object_parts import UnsatisfiableRangeError, find_range
from odf_protocol.multihash import Multihash

_SLICES: Final = "slices/"
_PARQUET: Final = ".parquet"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _NoSuchKeyError(Exception):
    """A file that is not there, or not for this caller."""


def _answering(handler: _Handler) -> _Handler:
    """Answer errors in the form of S3."""

    @wraps(handler)
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except _NoSuchKeyError:
            return _problem(HTTPStatus.NOT_FOUND, "NoSuchKey", "there is no such file")
        except SignatureError as error:
            return _problem(HTTPStatus.FORBIDDEN, "AccessDenied", str(error))
        except ProblemError as error:
            return _problem(error.status, error.word, error.detail, error.headers)
        except NotFoundError:
            return _problem(HTTPStatus.NOT_FOUND, "NoSuchKey", "there is no such file")
        except OdfError as error:
            problem = problem_of(error)
            return _problem(HTTPStatus(problem.status), type(error).__name__, problem.detail)

    return answer


def _problem(status: HTTPStatus, code: str, text: str, headers: dict[str, str] | None = None) -> web.Response:
    said = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{escape(text)}</Message></Error>"
    answer = web.Response(text=said, status=status.value, content_type="application/xml")
    answer.headers.update({**(headers or {}), "Cache-Control": "no-store"})
    return answer


@_answering
async def _get_file(request: web.Request) -> web.StreamResponse:
    signer = await _find_signer(request)
    record = await _get_dataset(request, signer.reads)
    path = request.match_info["path"]
    with calling(replace(get_requester(), name=signer.name)):
        if path.startswith(_SLICES) and path.endswith(_PARQUET):
            return await _answer_slice(request, record, path.removeprefix(_SLICES).removesuffix(_PARQUET))
        made = await request.app[SERVICE].run(get_caller(request).peer, lambda: _make_file(request, record, path))
    if made is None:
        raise _NoSuchKeyError
    return await _answer_made(request, made)


def _make_file(request: web.Request, record: DatasetRecord, path: str) -> bytes | None:
    service = request.app[SERVICE]
    made = service.get_file(record, path)
    if made is not None and request.method == "GET":
        version = service.get_tables(record).find_listed(path)
        if version is not None:
            service.node.store.access.note_read(record, version=version.block_number, what="table")
    return made


async def _get_dataset(request: web.Request, reads: ReadGrants) -> DatasetRecord:
    """Return the dataset that a path names, if it may be read.

    Raises:
        _NoSuchKeyError: It is not here, or not for this caller; the answers are the same (EX-3).
    """
    try:
        which = DatasetId.parse(DatasetId.scheme + request.match_info["table"])
    except (MalformedError, UnsupportedError):
        raise _NoSuchKeyError from None
    node = request.app[NODE]
    record = await asyncio.to_thread(node.store.find_readable, which, reads)
    if record is None:
        raise _NoSuchKeyError
    return record


@dataclass(frozen=True, slots=True)
class _Signer:
    """Who signed a request: their name for the audit log (AUDIT-2), and what they may read."""

    name: str
    reads: ReadGrants


async def _find_signer(request: web.Request) -> _Signer:
    """Find out who asks.

    Raises:
        SignatureError: The signature does not hold.
    """
    caller = get_caller(request)
    if not request.headers.get("Authorization", "").startswith(ALGORITHM):
        return _Signer(caller.peer, caller.reads)
    node = request.app[NODE]
    headers = {name.lower(): request.headers.getall(name) for name in request.headers}
    signed = SignedRequest(request.method, request.raw_path, headers)
    now = node.clock.now()
    token_hash = request.app[SERVICE].issuer.verify(signed, now.seconds)
    token = None if token_hash is None else await asyncio.to_thread(node.store.find_token, token_hash)
    anonymous = request.app[LIVE].configuration.access.anonymous
    if token is None or token.state_at(now) is not TokenState.VALID:
        return _Signer(caller.peer, read_grants((), anonymous=anonymous))
    return _Signer(f"token:{token.id}", read_grants(token.scopes, anonymous=anonymous))


async def _answer_slice(request: web.Request, record: DatasetRecord, text: str) -> web.StreamResponse:
    try:
        object_hash = Multihash.parse(text)
    except (MalformedError, UnsupportedError):
        raise _NoSuchKeyError from None
    node, service = request.app[NODE], request.app[SERVICE]

    def find() -> tuple[int, BinaryIO] | None:
        with explained_absence(node, record, object_hash):
            require_had(node, record, object_hash)
            tables = service.get_tables(record)
            version = tables.find_version(object_hash)
            if version is None:
                raise ObjectNotFoundError(object_hash)
            if not is_waiting and not service.row_files.is_at_hand(record, tables.history, version):
                return None
            file = service.row_files.get_path(record, tables.history, version).open("rb")
            if request.method == "GET":
                node.store.access.note_read(record, what="file")
            return os.fstat(file.fileno()).st_size, file

    is_waiting = False
    found = await asyncio.to_thread(find)
    if found is None:
        # The file has to be made, or its checksum read: one after another.
        is_waiting = True
        found = await service.run(get_caller(request).peer, find)
    assert found is not None
    size_bytes, file = found
    return await answer_object(request, file, size_bytes=size_bytes, etag=f"{object_hash}-{size_bytes}")


async def _answer_made(request: web.Request, made: bytes) -> web.Response:
    """Send a file that is made from a chain, or the part of it that is asked for."""
    headers = {
        "ETag": f'"{hashlib.sha3_256(made).hexdigest()}"',
        "Cache-Control": "private, no-cache",
        "Accept-Ranges": "bytes",
    }
    status, body = HTTPStatus.OK, made
    if request.method == "GET":
        try:
            part = find_range(request.headers.get("Range"), len(made))
        except UnsatisfiableRangeError as error:
            unsatisfied = {"Content-Range": f"bytes */{len(made)}"}
            return _problem(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "InvalidRange", str(error), unsatisfied)
        if part is not None:
            status, body = HTTPStatus.PARTIAL_CONTENT, made[part.start : part.end]
            headers["Content-Range"] = part.content_range
        await wait_to_send(request, len(body))
    return web.Response(body=body, status=status.value, headers=headers, content_type="application/octet-stream")


FILE_ROUTES: Final = (
    Route(
        "GET",
        f"/{BUCKET}/{{table}}/{{path:.+}}",
        _get_file,
        operation="""\
summary: A file of an Iceberg table, as S3 gives objects (ICEBERG-14 to ICEBERG-17).
parameters:
  - {name: table, in: path, required: true, description: 'The dataset''s identity without did:odf:.',
      schema: {type: string}}
  - {name: path, in: path, required: true, description: May have slashes., schema: {type: string}}
responses:
  200: Bytes
  206: Bytes
  403: S3Error
  404: S3Error
  416: S3Error
  503: S3Error
""",
    ),
)
