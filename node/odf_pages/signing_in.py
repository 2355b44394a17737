"""Signing in with a token of the node, and out.

Source: clauses PAGES-3, PAGES-4 and PAGES-6 in ``spec/plug-ins/pages.md``.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from aiohttp import web

from odf_node.http.bodies import read_body
from odf_node.http.callers import get_caller, secret_hash_of
from odf_node.http.problems import ProblemError
from odf_node.http.served_node import LIVE, NODE
from odf_node.records.access import Pages as Setting
from odf_node.records.access import TokenState
from odf_pages.rendering import Page, dress
from odf_pages.requests import (
    LASTS_S,
    PAGES,
    Viewer,
    cookie_name,
    find_cookie,
    find_viewer,
    is_encrypted,
    new_word,
)

MAX_FORM_BYTES: Final = 1024 * 1024  # guess: a long question
MAX_FIELDS: Final = 20  # guess: our forms have five
FORM_TYPE: Final = "application/x-www-form-urlencoded"
WORD_FIELD: Final = "form_word"

_OUR_PAGES: Final = re.compile(r"/(?:-/(?![^?]*(?://|\.\.))[A-Za-z0-9/_.:%?=&-]{0,1000})?", re.ASCII)
"""In the path neither dots that lead up nor two slashes, which others might read as a host.  # guess: the length"""
_MAX_TOKEN_CHARACTERS: Final = 512  # as in headers

RenderPage = Callable[[web.Request, Viewer, Page], Awaitable[web.Response]]


def require_shown(request: web.Request) -> None:
    """Stop whoever asks for what is shown to everybody who might sign in, where nobody may.

    Raises:
        HTTPNotFound: The answer to an address that is nowhere (PAGES-2).
    """
    if request.app[LIVE].configuration.access.pages == Setting.OFF.value:
        raise web.HTTPNotFound


async def read_form(request: web.Request, cookie: str) -> dict[str, str]:
    """Read a form that one of our pages sent.

    Raises:
        ProblemError: 415: it is no form; 413: it is too large; 403: it does not come from a page that was shown to
            whoever has the cookie.
    """
    if request.content_type != FORM_TYPE:
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", f"expected Content-Type {FORM_TYPE}")
    body = await read_body(request, MAX_FORM_BYTES)
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed", "expected a form in UTF-8") from None
    form = {name: values[0] for name, values in fields.items()}
    if not cookie or not request.app[PAGES].sessions.is_form_word(cookie, form.get(WORD_FIELD, "")):
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            "foreign-form",
            "this form is not one that was shown to you, or is too old: load the page again",
        )
    return form


def answer_sign_in(render_page: RenderPage) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Make the handler of the page with the form, and of the form."""

    async def answer(request: web.Request) -> web.StreamResponse:
        require_shown(request)
        if request.method in {"GET", "HEAD"}:
            return await _show_form(request, render_page, "")
        if request.method != "POST":
            raise web.HTTPMethodNotAllowed(request.method, ("GET", "HEAD", "POST"))
        cookie = find_cookie(request, _form_cookie(request))
        try:
            form = await read_form(request, cookie)
        except ProblemError as error:
            return await _show_form(request, render_page, error.detail, error.status)
        secret_hash = await _find_valid(request, form.get("token", "").strip())
        if secret_hash is None:
            lack = "the token is unknown, expired or revoked"
            return await _show_form(request, render_page, lack, HTTPStatus.FORBIDDEN)
        sessions = request.app[PAGES].sessions
        sessions.end(find_cookie(request, cookie_name(request)))
        word = sessions.begin(secret_hash)
        then = form.get("then", "")
        answer = _go_to(then if _OUR_PAGES.fullmatch(then) else "/")
        _set_cookie(request, answer, cookie_name(request), word)
        _forget_cookie(request, answer, _form_cookie(request))
        return answer

    return answer


async def answer_sign_out(request: web.Request) -> web.StreamResponse:
    """End the session of whoever asks."""
    require_shown(request)
    viewer = await find_viewer(request)
    if request.method != "POST" or not viewer.cookie:
        raise web.HTTPNotFound
    await read_form(request, viewer.cookie)
    request.app[PAGES].sessions.end(viewer.cookie)
    answer = _go_to("/-/sign-in")
    _forget_cookie(request, answer, cookie_name(request))
    return answer


async def _show_form(
    request: web.Request, render_page: RenderPage, lack: str, status: HTTPStatus = HTTPStatus.OK
) -> web.StreamResponse:
    cookie = new_word()
    then = request.query.get("then", "")
    values = {
        "lack": lack,
        "then": then if _OUR_PAGES.fullmatch(then) else "/",
        "sign_in_word": request.app[PAGES].sessions.form_word(cookie),
    }
    caller = get_caller(request)
    page = await render_page(request, Viewer(caller.peer, caller.reads), Page("sign_in.html", values, status))
    _set_cookie(request, page, _form_cookie(request), cookie)
    return page


async def _find_valid(request: web.Request, secret: str) -> bytes | None:
    """Return what is kept of a token that opens something."""
    if not 0 < len(secret) <= _MAX_TOKEN_CHARACTERS or "\0" in secret:
        return None
    node, secret_hash = request.app[NODE], secret_hash_of(secret)
    token = await asyncio.to_thread(node.store.find_token, secret_hash)
    is_valid = token is not None and token.state_at(node.clock.now()) is TokenState.VALID
    return secret_hash if is_valid else None


def _go_to(path: str) -> web.Response:
    return dress(web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": path}))


def _form_cookie(request: web.Request) -> str:
    return f"{cookie_name(request)}_form"


def _set_cookie(request: web.Request, answer: web.Response, name: str, word: str) -> None:
    answer.set_cookie(
        name, word, max_age=int(LASTS_S), path="/", httponly=True, samesite="Strict", secure=is_encrypted(request)
    )


def _forget_cookie(request: web.Request, answer: web.Response, name: str) -> None:
    # As it was set: browsers take nothing else of a name that begins with __Host-.
    answer.del_cookie(name, path="/", httponly=True, samesite="Strict", secure=is_encrypted(request))
