"""Which address shows what, to whom; and what every page has in common.

Everything lies at ``/`` and below ``/-/``, which no dataset's name can begin with (NAME-1). Who may not see pages gets
the answer to an address that is nowhere, before anything is looked up.

Source: clauses PAGES-1 to PAGES-7 in ``spec/plug-ins/pages.md``.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from odf_node.composition import Node
from odf_node.errors import UsageError
from odf_node.http.access_log import request_id_of, write_line
from odf_node.http.problems import RETRY_AFTER_S, ProblemError, problem_of
from odf_node.http.route_tables import Route, RouteTable
from odf_node.http.served_node import LIVE, NODE
from odf_node.records.access import Pages as Setting
from odf_pages import dataset_pages, lineage_pages, node_pages, row_pages, signing_in
from odf_pages.query_service import QUERY_SERVICE, PageQueries, answer_query
from odf_pages.rendering import Page, dress, read_asset, render
from odf_pages.requests import PAGES, PageAccess, PageRequest, Viewer, find_viewer
from odf_protocol.errors import OdfError

_READING: Final = ("GET", "HEAD")
_ASSETS: Final = {"pages.css": "text/css", "pages.js": "text/javascript"}

_NOWHERE: Final = Page("failure.html", {"title": "Not Found", "detail": "there is no such page"}, HTTPStatus.NOT_FOUND)

Show = Callable[[PageRequest], Page]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A page: what makes it, whether it takes its turn (it reads rows), whether it is about the node itself."""

    show: Show
    is_long: bool = False
    is_inner: bool = False


_SHOWN: Final = {
    "/": _Shown(dataset_pages.show_list),
    "/-/datasets/{dataset}": _Shown(dataset_pages.show_overview),
    "/-/datasets/{dataset}/versions": _Shown(dataset_pages.show_versions),
    "/-/datasets/{dataset}/versions/{number}": _Shown(dataset_pages.show_version),
    "/-/datasets/{dataset}/trust": _Shown(dataset_pages.show_trust),
    "/-/datasets/{dataset}/lineage": _Shown(lineage_pages.show_lineage),
    "/-/datasets/{dataset}/quarantine": _Shown(node_pages.show_quarantine, is_long=True, is_inner=True),
    "/-/status": _Shown(node_pages.show_status, is_long=True, is_inner=True),
    "/-/refusals": _Shown(node_pages.show_rejections, is_long=True, is_inner=True),
    "/-/refusals/{refusal}": _Shown(node_pages.show_rejection, is_inner=True),
    "/-/peers": _Shown(node_pages.show_peers, is_long=True, is_inner=True),
    "/-/datasets/{dataset}/rows": _Shown(row_pages.show_rows, is_long=True),
    "/-/datasets/{dataset}/rows/{offset}": _Shown(row_pages.show_history, is_long=True),
}


def prepare(app: web.Application, node: Node) -> None:
    """Put sessions and queries of the pages into the application; pages are shown as settings say at each request."""
    app[PAGES] = PageAccess(node)
    app[QUERY_SERVICE] = PageQueries(node)
    app.on_cleanup.append(_close)


async def _close(app: web.Application) -> None:
    pages = app[PAGES]
    pages.semaphore.close()
    pages.threads.shutdown(wait=False, cancel_futures=True)
    app[QUERY_SERVICE].close()


async def _answer(request: web.Request, *, shown: _Shown) -> web.StreamResponse:
    viewer = await get_admitted(request)
    if request.method not in _READING:
        raise web.HTTPMethodNotAllowed(request.method, _READING)
    pages = request.app[PAGES]
    query = {name: request.query.getall(name) for name in request.query}
    visit = PageRequest(pages.node, viewer, dict(request.match_info), query, _list_running(request))
    if shown.is_inner and not viewer.inspects:
        return await _render(request, viewer, _NOWHERE)
    try:
        return await _run(request, viewer, partial(shown.show, visit), is_long=shown.is_long)
    except (OdfError, ProblemError) as error:
        answer = await _render(request, viewer, _explain(request, error))
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
            answer.headers["Retry-After"] = RETRY_AFTER_S
        return answer


async def _answer_query(request: web.Request) -> web.StreamResponse:
    """Show the form for a question, and the answer to one (PAGES-13); strangers may ask none."""
    viewer = await get_admitted(request)
    if viewer.token is None:
        return await _render(request, viewer, _NOWHERE)
    if request.method not in (*_READING, "POST"):
        raise web.HTTPMethodNotAllowed(request.method, (*_READING, "POST"))
    form: dict[str, str] = {}
    try:
        if request.method == "POST":
            form = await signing_in.read_form(request, viewer.cookie)
        page = await answer_query(request.app[QUERY_SERVICE], viewer, form)
    except ProblemError as error:
        page = _explain(request, error)
    return await _render(request, viewer, page)


async def _run(
    request: web.Request, viewer: Viewer, make: Callable[[], Page], *, is_long: bool = False
) -> web.Response:
    pages, frame = request.app[PAGES], _frame(request, viewer)

    async def run() -> web.Response:
        context, loop = viewer.make_context(), asyncio.get_running_loop()
        return await loop.run_in_executor(pages.threads, context.run, lambda: render(make(), frame))

    if not is_long:
        return await run()
    async with pages.semaphore.ask(viewer.peer):
        return await run()


async def _render(request: web.Request, viewer: Viewer, page: Page) -> web.Response:
    return await _run(request, viewer, lambda: page)


async def get_admitted(request: web.Request) -> Viewer:
    """Return who looks, if pages are shown to them.

    Raises:
        HTTPNotFound: They are not: the answer to an address that is nowhere (PAGES-2).
    """
    setting = Setting(request.app[LIVE].configuration.access.pages)
    if setting is Setting.OFF:
        raise web.HTTPNotFound
    viewer = await find_viewer(request)
    if viewer.token is None and setting is not Setting.EVERYONE:
        raise web.HTTPNotFound
    return viewer


async def _answer_asset(request: web.Request) -> web.Response:
    signing_in.require_shown(request)
    if request.method not in _READING:
        raise web.HTTPMethodNotAllowed(request.method, _READING)
    name = request.path.rpartition("/")[2]
    body = await asyncio.to_thread(read_asset, name)
    return dress(web.Response(body=body, content_type=_ASSETS[name], charset="utf-8"))


def _list_running(request: web.Request) -> tuple[tuple[str, int, int], ...]:
    queues = {
        "verifications of what others offer": request.app[NODE].verifications,
        "pages that read rows": request.app[PAGES].semaphore,
        "short queries of pages": request.app[QUERY_SERVICE].semaphore.short_semaphore,
        "long queries of pages": request.app[QUERY_SERVICE].semaphore.long_semaphore,
    }
    return tuple((name, semaphore.running, semaphore.waiting) for name, semaphore in queues.items())


def _frame(request: web.Request, viewer: Viewer) -> dict[str, Any]:
    pages = request.app[PAGES]
    return {
        "viewer": viewer,
        "path": request.path,
        "form_word": pages.sessions.form_word(viewer.cookie) if viewer.cookie else "",
    }


def _explain(request: web.Request, error: OdfError | ProblemError) -> Page:
    """Make the page of a failure; its words are those of the same failure on other routes (EX-9)."""
    if isinstance(error, ProblemError):
        status, detail = error.status, error.detail
    elif isinstance(error, UsageError):
        status, detail = HTTPStatus.BAD_REQUEST, str(error)
    else:
        write_line("error", request_id=request_id_of(request), error=type(error).__name__, text=str(error))
        problem = problem_of(error)
        status, detail = HTTPStatus(problem.status), problem.detail
    return Page("failure.html", {"title": status.phrase, "detail": detail}, status)


ROUTES: Final = RouteTable(
    (
        *(Route("*", path, partial(_answer, shown=shown)) for path, shown in _SHOWN.items()),
        *(Route("*", f"/-/{name}", _answer_asset) for name in _ASSETS),
        Route("*", "/-/sign-in", signing_in.answer_sign_in(_render)),
        Route("*", "/-/sign-out", signing_in.answer_sign_out),
        Route("*", "/-/sql", _answer_query),
    ),
    prepare,
)
"""Found by its entry point in the group ``odf_node.routes``."""
