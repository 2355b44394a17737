"""Routes of the changes of a dataset, and of how far consumers of them are.

An answer is made in a file first, of bounded size, so that a slow reader keeps no place among those whose answers are
made. Positions belong to a token: nobody moves those of others.

Source: clause TABLE-15 in ``spec/plug-ins/tables.md``.
"""

import asyncio
import hashlib
import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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
from odf_node.records.errors import TooManyWaitingError, mapped_os_errors
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_tables.changes import COMMIT_VERSION, VersionChanges
from odf_tables.consumers import Consumer
from odf_tables.queries import Relations

MAX_ROWS: Final = 100_000
"""Of an answer, but for a version that alone has more.  # guess: some megabytes"""
MAX_CONSUMERS: Final = 100
"""Of a token, for a dataset.  # guess: more than a token is given to"""
MAX_BYTES: Final = 1 << 30
"""Of an answer, beside what its slices may be unpacked to.  # guess: some million rows"""
MAX_UNPACKED: Final = 32
"""How many times the bytes of its slices an answer may have.  # guess: text as JSON has ten times as many"""
_CELL_BYTES: Final = 24  # guess: a number in digits, with quotes and comma
MAX_HELD_BYTES: Final = 4 << 30
"""Of answers on the disk that are still sent; half of it for one caller.  # guess"""
_AT_ONCE, _WAITING = 2, 32  # guess: each reads slices in a process of its own
_ARROW: Final = "application/vnd.apache.arrow.stream"
_NDJSON: Final = "application/x-ndjson"
_TOKEN_DIGITS: Final = 16


@dataclass(slots=True)
class ChangeAnswers:
    """Makes answers; at most some at once, in turn by who asks, and so many bytes of them on the disk."""

    node: Node
    held: Counter[str] = field(default_factory=Counter)
    """Bytes of answers that are still sent, by caller."""
    semaphore: FairSemaphore = field(
        default_factory=lambda: FairSemaphore(lambda: TurnLimits(at_once=_AT_ONCE, waiting=_WAITING))
    )

    def require_room(self, caller: str) -> None:
        """Check that answers which are read slowly do not fill the disk.

        Raises:
            TooManyWaitingError: Answers are still sent to this caller, or to all, that hold as much as they may.
        """
        if 2 * self.held[caller] >= MAX_HELD_BYTES or self.held.total() >= MAX_HELD_BYTES:
            raise TooManyWaitingError(len(self.held))

    @contextmanager
    def holding(self, caller: str, size_bytes: int) -> Iterator[None]:
        """Count an answer for as long as it is sent."""
        self.held[caller] += size_bytes
        try:
            yield
        finally:
            self.held[caller] -= size_bytes
            if not self.held[caller]:
                del self.held[caller]


class TooLargeVersionError(UsageError):
    """One version has more than an answer may have."""


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
    answers, caller = request.app[ANSWERS], get_caller(request).peer

    def make(file: BinaryIO) -> tuple[int, int]:
        changes = VersionChanges(Relations(node, record, brings=False))

        def write(since: int, last: int | None = None) -> int:
            until = changes.choose_end(since, MAX_ROWS)
            until = until if last is None else min(until, last)
            return _write(changes, since, until, file, is_arrow=is_arrow, max_bytes=MAX_BYTES)

        if consumer is None:
            since, last = changes.check_interval(*asked)
            return since, write(since, last)
        consumer.require_room(_prefix_of(request), MAX_CONSUMERS)
        since, until = consumer.begin(write, changes.relations.find_hash)
        if not file.tell():  # it was handed these before, and gets just them
            _write(changes, since, until, file, is_arrow=is_arrow, max_bytes=math.inf)
        return since, until

    answers.require_room(caller)
    # Beside the home and not where memory may be the disk: a version has as many rows as it has.
    with tempfile.TemporaryFile(dir=node.engines.workspace) as made:
        file = cast("BinaryIO", made)
        async with answers.semaphore.ask(caller):
            answers.require_room(caller)  # again: answers of those before it may be on their way now
            try:
                with mapped_os_errors(node.engines.workspace):
                    since, until = await asyncio.to_thread(make, file)
                    file.flush()  # it is sent by its descriptor
            except TooLargeVersionError as error:
                raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "too-large", str(error)) from error
            except UsageError as error:
                raise ProblemError(HTTPStatus.BAD_REQUEST, "bad-request", str(error)) from error
        answer = web.StreamResponse(headers={"odf-since": str(since), "odf-until": str(until)})
        answer.content_type = _ARROW if is_arrow else _NDJSON
        answer.headers["Cache-Control"] = "no-store"
        answer.content_length = file.tell()
        with answers.holding(caller, answer.content_length):
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


def _write(changes: VersionChanges, since: int, until: int, file: BinaryIO, *, is_arrow: bool, max_bytes: float) -> int:
    """Write an answer, behind one version; returns up to which one, as it ends where it would become too large.

    Sizes are those of rows in memory, so that an answer ends at the same version in both forms.

    Raises:
        TooLargeVersionError: The first version with rows alone is.
    """
    if changes.relations.view().schema is None:
        return until
    schema = changes.get_schema()
    row_bytes = sum(len(name) + _CELL_BYTES for name in schema.names)
    taken_bytes = 0
    with pa.ipc.new_stream(file, schema) if is_arrow else nullcontext() as writer:
        if writer is not None:
            writer.write_batch(pa.RecordBatch.from_pylist([], schema))  # the schema goes out with the first batch
        whole_bytes, version = file.tell(), since
        for batch in changes.iter_batches(since, until):
            if (found := batch.column(COMMIT_VERSION)[0].as_py()) != version:
                whole_bytes, version = file.tell(), found
                max_bytes += MAX_UNPACKED * changes.get_size_bytes(version)
            taken_bytes += batch.nbytes + batch.num_rows * row_bytes
            if taken_bytes > max_bytes:
                if version - 1 == since:
                    way = f"read it another way, such as 'odf-node pull', and go on with since={version}"
                    raise TooLargeVersionError(f"version {version} alone is more than an answer may be; {way}")
                file.seek(whole_bytes)
                file.truncate()
                return version - 1
            if writer is not None:
                writer.write_batch(batch)
            else:
                file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in plain_rows([batch]))
    return until


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
  422: Problem
  503: Problem
  507: Problem
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
