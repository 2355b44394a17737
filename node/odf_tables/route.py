"""Routes of the changes of a dataset, and of how far consumers of them are.

An answer is made in a file first, of bounded size, so that a slow reader keeps no place among those whose answers are
made. Positions belong to a token: nobody moves those of others.

Source: clause TABLE-15 in ``spec/plug-ins/tables.md``.
"""

import asyncio
import hashlib
import json
import tempfile
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import BinaryIO, Final, cast

import pyarrow as pa
from aiohttp import web

from odf_node.composition import Node
from odf_node.datasets.row_files import plain_rows
from odf_node.errors import UsageError
from odf_node.http.addressed import get_followed, get_number
from odf_node.http.callers import get_caller, get_token
from odf_node.http.problems import ProblemError
from odf_node.http.route_tables import Access, Route, RouteTable
from odf_node.http.sending import send_file
from odf_node.records.datasets import DatasetRecord
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_tables.changes import VersionChanges
from odf_tables.consumers import Consumer
from odf_tables.queries import Relations

MAX_ROWS: Final = 100_000
"""Of an answer, but for a version that alone has more.  # guess: some megabytes"""
MAX_CONSUMERS: Final = 100
"""Of a token, for a dataset.  # guess: more than a token is given to"""
_AT_ONCE, _WAITING = 2, 32  # guess: each reads slices in a process of its own
_ARROW: Final = "application/vnd.apache.arrow.stream"
_NDJSON: Final = "application/x-ndjson"
_TOKEN_DIGITS: Final = 16


@dataclass(slots=True)
class ChangeAnswers:
    """Makes answers; at most some at once, in turn by who asks."""

    node: Node
    semaphore: FairSemaphore = field(
        default_factory=lambda: FairSemaphore(lambda: TurnLimits(at_once=_AT_ONCE, waiting=_WAITING))
    )


ANSWERS: Final = web.AppKey("changes", ChangeAnswers)


def prepare(app: web.Application, node: Node) -> None:
    """Put what makes answers into the application."""
    app[ANSWERS] = ChangeAnswers(node)


async def _get_changes(request: web.Request) -> web.StreamResponse:
    record, node = await get_followed(request), request.app[ANSWERS].node
    _require_known(request, {"since", "until", "consumer"})
    is_arrow = _ARROW in request.headers.get("Accept", "")
    consumer = _find_consumer(request, record)
    if consumer is not None and len(request.query) > 1:
        expected = "a consumer reads on from where it is: expected no since= and until= beside consumer="
        raise ProblemError(HTTPStatus.BAD_REQUEST, "bad-request", expected)
    asked = get_number(request, "since", -1), get_number(request, "until", record.head.sequence_number)

    def make(file: BinaryIO) -> tuple[int, int]:
        relations = Relations(node, record, brings=False)
        changes = VersionChanges(relations)
        if consumer is not None:
            consumer.require_room(_prefix_of(request), MAX_CONSUMERS)
            since, until = consumer.begin(lambda behind: changes.choose_end(behind, MAX_ROWS))
        else:
            since, last = changes.check_interval(*asked)
            until = min(changes.choose_end(since, MAX_ROWS), last)
        _write(changes, since, until, file, is_arrow=is_arrow)
        file.flush()  # it is sent by its descriptor
        return since, until

    # Beside the home and not where memory may be the disk: a version has as many rows as it has.
    with tempfile.TemporaryFile(dir=node.engines.workspace) as made:
        file = cast("BinaryIO", made)
        async with request.app[ANSWERS].semaphore.ask(get_caller(request).peer):
            try:
                since, until = await asyncio.to_thread(make, file)
            except UsageError as error:
                raise ProblemError(HTTPStatus.BAD_REQUEST, "bad-request", str(error)) from error
        answer = web.StreamResponse(headers={"odf-since": str(since), "odf-until": str(until)})
        answer.content_type = _ARROW if is_arrow else _NDJSON
        answer.headers["Cache-Control"] = "no-store"
        answer.content_length = file.tell()
        await answer.prepare(request)
        if request.method != "HEAD":
            await send_file(request, answer, file, 0, answer.content_length)
        return answer


async def _commit(request: web.Request) -> web.Response:
    record = await get_followed(request)
    _require_known(request, {"since", "until", "consumer"})
    consumer = _find_consumer(request, record)
    since, until = get_number(request, "since", -2), get_number(request, "until", -2)
    if consumer is None or not -1 <= since <= until <= record.head.sequence_number:
        expected = "expected consumer=NAME, and since= and until= as the answer stated them"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "bad-request", expected)
    try:
        await asyncio.to_thread(consumer.commit, since, until)
    except UsageError as error:
        raise ProblemError(HTTPStatus.CONFLICT, "conflict", str(error)) from error
    return web.Response(status=HTTPStatus.NO_CONTENT)


def _find_consumer(request: web.Request, record: DatasetRecord) -> Consumer | None:
    name = request.query.get("consumer")
    if name is None:
        return None
    folder = request.app[ANSWERS].node.home.folder
    try:
        return Consumer.of(folder, record, name, prefix=_prefix_of(request))
    except UsageError as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "bad-request", str(error)) from error


def _prefix_of(request: web.Request) -> str:
    """Give how the names of a token's consumers begin: no token has those of another, or of Python's."""
    return f"token-{hashlib.sha3_256(get_token(request).id.encode()).hexdigest()[:_TOKEN_DIGITS]}-"


def _require_known(request: web.Request, known: set[str]) -> None:
    for name in request.query:
        if name not in known or len(request.query.getall(name)) > 1:
            raise ProblemError(HTTPStatus.BAD_REQUEST, "bad-request", f"expected once each: {', '.join(sorted(known))}")


def _write(changes: VersionChanges, since: int, until: int, file: BinaryIO, *, is_arrow: bool) -> None:
    if changes.relations.view().schema is None:
        return
    if is_arrow:
        with pa.ipc.new_stream(file, changes.get_schema()) as writer:
            for batch in changes.iter_batches(since, until):
                writer.write_batch(batch)
        return
    for batch in changes.iter_batches(since, until):
        for row in plain_rows([batch]):
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


ROUTES: Final = RouteTable(
    (
        Route(
            "GET",
            "/{dataset}/changes",
            _get_changes,
            operation="""\
summary: What changed between two versions, or what a consumer has not read yet (TABLE-15 in ../plug-ins/tables.md).
parameters:
  - dataset
  - {name: since, in: query, schema: {type: integer, minimum: -1}}
  - {name: until, in: query, schema: {type: integer, minimum: 0}}
  - {name: consumer, in: query, description: Needs a token., schema: {type: string}}
responses:
  200:
    description: Lines of JSON, or Arrow's stream where Accept names it; odf-since and odf-until state the versions.
    content:
      application/x-ndjson: {}
      application/vnd.apache.arrow.stream: {}
  400: Problem
  401: Problem
  404: Problem
  503: Problem
""",
        ),
        Route(
            "POST",
            "/{dataset}/changes/commit",
            _commit,
            Access.TOKEN,
            operation="""\
summary: State that a consumer has read what it was given (TABLE-15).
security: [{token: []}]
parameters:
  - dataset
  - {name: consumer, in: query, required: true, schema: {type: string}}
  - {name: since, in: query, required: true, schema: {type: integer, minimum: -1}}
  - {name: until, in: query, required: true, schema: {type: integer, minimum: 0}}
responses:
  204: {description: It is noted.}
  400: Problem
  401: Problem
  404: Problem
  409: Problem
""",
        ),
    ),
    prepare,
)
"""Found by its entry point in the group ``odf_node.routes``."""
