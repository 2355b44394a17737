"""The route by which rows are sent into a root of this node (FEED-4 to FEED-7)."""

import asyncio
import base64
import hashlib
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from odf_engines.ingest_parts import QuarantineReason
from odf_node.http.addressed import get_followed
from odf_node.http.bodies import too_large
from odf_node.http.callers import get_token
from odf_node.http.problems import RETRY_AFTER_S, ProblemError
from odf_node.http.push import receive_body
from odf_node.http.route_tables import Route
from odf_node.http.served_node import LIVE, NODE
from odf_node.http.uploads import UPLOADS, Expected
from odf_node.ports.objects import StagedObject
from odf_node.ports.row_intake import NoRowsTakenError, RowFormatError, RowIntake, SentRows, TakenRows
from odf_node.records.access import PUSH_SCOPE, AccessToken
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.records.errors import TooManyWaitingError
from odf_node.records.ingests import KeyInUseError
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_node.threads import finish_in_thread
from odf_protocol.errors import MalformedError
from odf_protocol.exchange.block_outlines import WantedObject
from odf_protocol.exchange.routes import ObjectKind
from odf_protocol.http_signatures import CONTENT_DIGEST
from odf_protocol.multihash import Multihash
from odf_protocol.timestamp import Timestamp

MAX_SENT: Final = 8
"""Bodies that are here or arrive at once.  # guess: as pushes"""
MAX_TOKEN_SENT: Final = 4  # guess: half of them, so that nobody keeps all others out
MAX_KEY_CHARACTERS: Final = 255

_KEY: Final = "Idempotency-Key"
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
"""A string of RFC 9651, section 3.3.3, as the draft wants it; what has no quotes is taken as it is."""
_PARAMETERS: Final = frozenset({"sourceName"})


class IntakeQueue:
    """What is sent at this moment; used on the event loop only."""

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()
        self._keys: set[tuple[str, str, str]] = set()
        self.semaphore = FairSemaphore(lambda: TurnLimits(at_once=1, waiting=2 * MAX_SENT))

    @asynccontextmanager
    async def place(self, token: AccessToken, record: DatasetRecord, key: str | None) -> AsyncIterator[None]:
        """Hold a place from before a body arrives until its answer is known.

        Raises:
            TooManyWaitingError: All are taken.
            KeyInUseError: The same is asked for already.
        """
        asked = (token.id, str(record.id), key or "")
        if key is not None and asked in self._keys:
            raise KeyInUseError(key)
        if self._tokens.total() >= MAX_SENT or self._tokens[token.id] >= MAX_TOKEN_SENT:
            raise TooManyWaitingError(self._tokens.total())
        self._tokens[token.id] += 1
        if key is not None:
            self._keys.add(asked)
        try:
            yield
        finally:
            self._tokens[token.id] -= 1
            self._tokens += Counter()  # forgets tokens at zero
            self._keys.discard(asked)


ROW_INTAKE: Final = web.AppKey("row_desk", IntakeQueue)


def prepare_app(app: web.Application) -> None:
    """Make what the routes work with."""
    app[ROW_INTAKE] = IntakeQueue()


async def _take_rows(request: web.Request) -> web.Response:
    token = get_token(request)
    record = await get_followed(request)
    _require_named(token, record)
    intake = request.app[NODE].rows
    if intake is None or record.origin is not Origin.OWN:
        raise ProblemError(HTTPStatus.CONFLICT, "not-own", "rows are taken by the node that writes the dataset alone")
    key, event_time, source_name = _read_key(request), _read_event_time(request), _read_source_name(request)
    try:
        await asyncio.to_thread(intake.check, record, source_name, request.content_type)
        async with request.app[ROW_INTAKE].place(token, record, key):
            taken = await _receive_and_take(request, intake, token, record, (key, event_time, source_name))
    except RowFormatError as error:
        accepted = {"Accept-Post": ", ".join(error.accepted)}
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", str(error), headers=accepted) from error
    except KeyInUseError as error:
        again = {"Retry-After": RETRY_AFTER_S}
        raise ProblemError(HTTPStatus.CONFLICT, "key-in-use", str(error), headers=again) from error
    except NoRowsTakenError as error:
        report = {"quarantinedRows": error.bad_rows, "reasons": _reasons_to_json(error.reasons)}
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "no-rows-taken", str(error), report=report) from error
    return _answer(record, taken)


def _require_named(token: AccessToken, record: DatasetRecord) -> None:
    """Check that the operator named this dataset: tokens for pushes of any were never meant for the node's own.

    Raises:
        ProblemError: 403.
    """
    if f"{PUSH_SCOPE}:{record.id}" not in token.scopes:
        raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", f"the token does not name {record.id} as one to write")


async def _receive_and_take(
    request: web.Request,
    intake: RowIntake,
    token: AccessToken,
    record: DatasetRecord,
    asked: tuple[str | None, Timestamp | None, str | None],
) -> TakenRows:
    objects, (key, event_time, source_name) = request.app[NODE].objects, asked
    max_bytes = request.app[LIVE].configuration.limits.sent_rows_bytes
    if (request.content_length or 0) > max_bytes:
        raise too_large(max_bytes)
    with objects.writing(), objects.stage() as staged:
        async with _room(request, staged, request.content_length or max_bytes):
            await receive_body(request, staged, max_bytes)
        await asyncio.to_thread(staged.flush)
        await asyncio.to_thread(_check_digest, request, staged.path)
        async with request.app[ROW_INTAKE].semaphore.ask(token.id):
            rows = SentRows(
                path=staged.path, source_name=source_name, event_time=event_time, token_id=token.id, key=key
            )
            return await finish_in_thread(lambda: intake.take(record, rows), stop=intake.stop)


@asynccontextmanager
async def _room(request: web.Request, staged: StagedObject, max_bytes: int) -> AsyncIterator[None]:
    """Keep room for a body, as for the objects of a push (EX-57)."""
    name = Multihash.of_sha3_256(secrets.token_bytes(16))
    expected = Expected({name: WantedObject(ObjectKind.DATA, name, max_bytes)}, lambda _: staged.size_bytes)
    live, uploads, which = request.app[LIVE], request.app[UPLOADS], f"rows:{name}"
    lack = await uploads.admit(which, expected, live.configuration.storage, request.app[NODE].objects)
    if lack is not None:
        live.metrics.turned_away.labels(reason=lack).inc()
        raise ProblemError(HTTPStatus.INSUFFICIENT_STORAGE, "no-room", "this node has no room for these rows")
    try:
        yield
    finally:
        uploads.forget(which)


def _check_digest(request: web.Request, path: Path) -> None:
    """Compare a body with what is said of it, which a signature covers (EX-52)."""
    stated = request.headers.get(CONTENT_DIGEST)
    if stated is None:
        return
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    if stated != f"sha-256=:{base64.b64encode(digest).decode('ascii')}:":
        raise MalformedError("body", expected=f"{CONTENT_DIGEST} of it", found="another")


def _read_key(request: web.Request) -> str | None:
    values = request.headers.getall(_KEY, [])
    if not values:
        return None
    quoted = _QUOTED.fullmatch(values[0])
    key = values[0] if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1])
    if len(values) > 1 or not 0 < len(key) <= MAX_KEY_CHARACTERS or not (key.isascii() and key.isprintable()):
        raise MalformedError(_KEY, expected=f"one text of 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")
    return key


def _read_event_time(request: web.Request) -> Timestamp | None:
    values = request.headers.getall("odf-event-time", [])
    if len(values) > 1:
        raise MalformedError("odf-event-time", expected="one time", found=f"{len(values)} times")
    return Timestamp.parse(values[0]) if values else None


def _read_source_name(request: web.Request) -> str | None:
    unknown = sorted({*request.query} - _PARAMETERS)
    names = request.query.getall("sourceName", [])
    if unknown or len(names) > 1:
        raise MalformedError("query", expected="sourceName once, or nothing", found=repr([*request.query])[:200])
    return names[0] if names else None


def _answer(record: DatasetRecord, taken: TakenRows) -> web.Response:
    values = {
        "dataset": record.name,
        "id": str(record.id),
        "head": taken.head,
        "newBlocks": taken.new_blocks,
        "newRows": taken.new_rows,
        "upToDate": taken.up_to_date,
        **taken.counts.to_json(),
        "reasons": _reasons_to_json(taken.reasons),
        "warnings": _reasons_to_json(taken.warnings),
        "repeated": taken.repeated,
    }
    return web.json_response(values, headers={"Cache-Control": "no-store"})


def _reasons_to_json(reasons: Sequence[QuarantineReason]) -> list[dict[str, Any]]:
    return [asdict(each) for each in reasons]


ROUTES: Final = (
    Route(
        "POST",
        "/{dataset}/ingest",
        _take_rows,
        operation="""\
summary: Send rows into a root of this node (FEED-4).
parameters:
  - dataset
  - {name: sourceName, in: query, description: 'Of several push sources, which.', schema: {type: string}}
  - {name: Idempotency-Key, in: header, description: The same again under this key is taken once
        (FEED-5)., schema: {type: string, minLength: 1, maxLength: 255}}
  - {name: odf-event-time, in: header, description: Of rows that have none., schema: {type: string,
        format: date-time}}
security: [{token: []}]
requestBody:
  required: true
  content:
    text/csv: {}
    application/json: {}
    application/x-ndjson: {}
    application/geo+json: {}
    application/x-ndgeojson: {}
    application/vnd.apache.parquet: {}
    application/octet-stream: {}
responses:
  200: {description: What was made of them., content: {application/json: {schema: {type: object,
            required: [dataset, id, head, newBlocks, newRows, upToDate, quarantinedRows, leftOutRows,
              reasons, warnings, repeated], properties: {dataset: {$ref: '#/components/schemas/Name'},
              id: {$ref: '#/components/schemas/DatasetId'}, head: {$ref: '#/components/schemas/Hash'},
              newBlocks: {type: integer}, newRows: {type: integer}, upToDate: {type: boolean},
              quarantinedRows: {type: integer}, leftOutRows: {type: integer}, reasons: {type: array,
                items: {type: object}}, warnings: {type: array, items: {type: object}}, repeated: {
                type: boolean}}}}}}
  400: Problem
  401: Problem
  403: Problem
  404: Problem
  409: Problem
  413: Problem
  415: Problem
  422: Problem
  503: Problem
  507: Problem
""",
    ),
)
