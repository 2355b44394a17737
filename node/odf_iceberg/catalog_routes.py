"""The read side of Iceberg's REST catalogue.

Source: clauses ICEBERG-1 to ICEBERG-4 and ICEBERG-13 in ``spec/plug-ins/iceberg.md``; Iceberg REST catalogue
specification (``open-api/rest-catalog-open-api.yaml``).
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from odf_iceberg.credentials import REGION, endpoint_of
from odf_iceberg.service import SERVICE
from odf_iceberg.tables import Shown
from odf_node.http.callers import get_caller
from odf_node.http.problems import ProblemError, problem_of
from odf_node.http.route_tables import Route
from odf_node.http.served_node import LIVE, NODE
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import DatasetNotFoundError, ObjectNotFoundError
from odf_protocol.errors import MalformedError, NotFoundError, OdfError, UnsupportedError
from odf_protocol.names import DatasetName

PREFIX: Final = "_iceberg"
"""Address of the catalogue. No dataset can have this name (EX-1)."""
NAMESPACE: Final = "odf"
CHANGES_SUFFIX: Final = "__changes"
"""No name of a dataset ends so: names have no underscores (NAME-1)."""
MAX_PAGE: Final = 1_000  # guess: some 100 kB
_LEVELS: Final = "\x1f"
"""Between levels of a namespace. Source: Iceberg REST catalogue specification, parameter ``namespace``."""

_Handler = Callable[[web.Request], Awaitable[web.Response]]


class _NoSuchNamespaceError(Exception):
    """A namespace that this catalogue does not have."""


def _answering(handler: _Handler) -> _Handler:
    """Answer errors in the form of Iceberg's catalogues."""

    @wraps(handler)
    async def answer(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except _NoSuchNamespaceError:
            return _problem(HTTPStatus.NOT_FOUND, "NoSuchNamespaceException", f"the only namespace is '{NAMESPACE}'")
        except ObjectNotFoundError:
            text = "this node holds the metadata of this table and not its rows"
            return _problem(HTTPStatus.NOT_FOUND, "NoSuchTableException", text)
        except NotFoundError:
            return _problem(HTTPStatus.NOT_FOUND, "NoSuchTableException", "there is no such table")
        except ProblemError as error:
            return _problem(error.status, error.word, error.detail, error.headers)
        except OdfError as error:
            problem = problem_of(error)
            return _problem(HTTPStatus(problem.status), type(error).__name__, problem.detail)

    return answer


def _problem(status: HTTPStatus, kind: str, text: str, headers: dict[str, str] | None = None) -> web.Response:
    answer = web.json_response({"error": {"message": text, "type": kind, "code": status.value}}, status=status.value)
    answer.headers.update({**(headers or {}), "Cache-Control": "no-store"})
    return answer


def _answer(said: dict[str, Any]) -> web.Response:
    return web.json_response(said, headers={"Cache-Control": "no-store"})


@_answering
async def _get_config(_request: web.Request) -> web.Response:
    base = "/v1/{prefix}/namespaces"
    offered = [base, f"{base}/{{namespace}}", f"{base}/{{namespace}}/tables", f"{base}/{{namespace}}/tables/{{table}}"]
    heads = [f"HEAD {offered[1]}", f"HEAD {offered[3]}"]
    return _answer({"defaults": {}, "overrides": {}, "endpoints": [*(f"GET {each}" for each in offered), *heads]})


@_answering
async def _list_namespaces(request: web.Request) -> web.Response:
    parent = request.query.get("parent")
    if parent is not None and parent != NAMESPACE:
        raise _NoSuchNamespaceError
    return _answer({"namespaces": [] if parent else [[NAMESPACE]], "next-page-token": None})


@_answering
async def _get_namespace(request: web.Request) -> web.Response:
    _require_namespace(request)
    return _answer({"namespace": [NAMESPACE], "properties": {}})


@_answering
async def _list_tables(request: web.Request) -> web.Response:
    _require_namespace(request)
    node, reads = request.app[NODE], get_caller(request).reads
    after, count = request.query.get("pageToken", ""), _read_page_size(request)

    def find() -> list[str]:
        records = node.store.list_readable(reads)
        return [name for each in records for name in (each.name, f"{each.name}{CHANGES_SUFFIX}")]

    names = sorted(await asyncio.to_thread(find))
    page = [name for name in names if name > after][: count + 1]
    goes_on = page[count - 1] if len(page) > count else None
    identifiers = [{"namespace": [NAMESPACE], "name": name} for name in page[:count]]
    return _answer({"identifiers": identifiers, "next-page-token": goes_on})


def _read_page_size(request: web.Request) -> int:
    text = request.query.get("pageSize")
    if text is None:
        return MAX_PAGE if "pageToken" in request.query else 10**9
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text)):
        raise MalformedError("pageSize", expected="a whole number above 0", found=repr(text[:32]))
    return min(int(text), MAX_PAGE)


@_answering
async def _load_table(request: web.Request) -> web.Response:
    record, shown = await _find_table(request)
    service, caller, node = request.app[SERVICE], get_caller(request), request.app[NODE]

    def make() -> dict[str, Any]:
        node.disputes.require_undisputed(record.id, record.name)
        tables = service.get_tables(record)
        if not tables.history.schemas:
            raise DatasetNotFoundError("of this name")
        return {"metadata-location": tables.metadata_location(shown), "metadata": tables.make_metadata(shown)}

    loaded = await service.run(caller.peer, make)
    token_hash = None if caller.token is None else caller.token.secret_hash
    given = service.issuer.issue(token_hash, node.clock.now().seconds)
    settings = {
        "s3.endpoint": endpoint_of(request.app[LIVE].configuration.listen.public_url, request.scheme, request.host),
        "s3.path-style-access": "true",
        "s3.access-key-id": given.access_key,
        "s3.secret-access-key": given.secret,
        "s3.region": REGION,
        "client.region": REGION,
    }
    return _answer({**loaded, "config": settings})


def _require_namespace(request: web.Request) -> None:
    if request.match_info["namespace"] != NAMESPACE:
        raise _NoSuchNamespaceError


async def _find_table(request: web.Request) -> tuple[DatasetRecord, Shown]:
    """Return the dataset that a table shows, if the caller may read it.

    Levels of the namespace below the first are the beginning of a name that has dots, as readers cut it there.

    Raises:
        DatasetNotFoundError: There is none, or not for this caller: the answers are the same (EX-3).
    """
    first, *levels = request.match_info["namespace"].split(_LEVELS)
    if first != NAMESPACE:
        raise _NoSuchNamespaceError
    text = ".".join([*levels, request.match_info["table"]])
    shown = Shown.CHANGES if text.lower().endswith(CHANGES_SUFFIX) else Shown.CURRENT
    try:
        name = DatasetName.parse(text[: -len(CHANGES_SUFFIX)] if shown is Shown.CHANGES else text)
    except (MalformedError, UnsupportedError):
        raise DatasetNotFoundError("of this name") from None
    store, reads = request.app[NODE].store, get_caller(request).reads
    record = await asyncio.to_thread(store.find_readable, name, reads)
    if record is None:
        raise DatasetNotFoundError("of this name")
    return record, shown


_TABLES: Final = f"/{PREFIX}/v1/namespaces/{{namespace}}/tables"

CATALOG_ROUTES: Final = (
    Route(
        "GET",
        f"/{PREFIX}/v1/config",
        _get_config,
        operation="""\
summary: What Iceberg's readers may ask for here (ICEBERG-1 in ../plug-ins/iceberg.md, as below).
responses:
  200: Iceberg
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/v1/namespaces",
        _list_namespaces,
        operation="""\
summary: The namespaces of the Iceberg catalogue, of which there is one (ICEBERG-2).
parameters:
  - {name: parent, in: query, schema: {type: string}}
responses:
  200: Iceberg
  404: Iceberg
""",
    ),
    Route(
        "GET",
        f"/{PREFIX}/v1/namespaces/{{namespace}}",
        _get_namespace,
        operation="""\
summary: That a namespace is there (ICEBERG-2).
parameters: [namespace]
responses:
  200: Iceberg
  404: Iceberg
""",
    ),
    Route(
        "GET",
        _TABLES,
        _list_tables,
        operation="""\
summary: The tables that the caller may read, two for each dataset (ICEBERG-2).
parameters:
  - namespace
  - {name: pageToken, in: query, schema: {type: string}}
  - {name: pageSize, in: query, schema: {type: integer, minimum: 1}}
responses:
  200: Iceberg
  400: Iceberg
  404: Iceberg
""",
    ),
    Route(
        "GET",
        f"{_TABLES}/{{table}}",
        _load_table,
        operation="""\
summary: The metadata of a table, with credentials for its files (ICEBERG-3 to ICEBERG-12).
parameters:
  - namespace
  - {name: table, in: path, required: true, schema: {type: string}}
responses:
  200: Iceberg
  404: Iceberg
  409: Iceberg
  422: Iceberg
  503: Iceberg
""",
    ),
)
