"""From a template and values to an answer, with the headers that every page has.

Values are escaped wherever they stand: no template turns it off, and a value that is missing is an error.

Source: clauses PAGES-7 and PAGES-8 in ``spec/plug-ins/pages.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from odf_pages.environment import make_environment

FOLDER: Final = Path(__file__).parent

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
"""What a browser may load for a page: our style and script and nothing else. Source: CSP Level 3."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    # With no-referrer, browsers say of our own forms that they come from nowhere (Fetch, "append a request Origin").
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Page:
    """What is to be shown: a template and its values."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK


def render(page: Page, frame: Mapping[str, Any]) -> web.Response:
    """Make the answer; ``frame`` is what stands around every page."""
    text = make_environment().get_template(page.template).render({**page.values, **frame})
    # What cannot be UTF-8 was made visible before; nothing that is left may end an answer half way.
    body = text.encode("utf-8", "replace")
    return dress(web.Response(body=body, status=page.status, content_type="text/html", charset="utf-8"))


def dress(answer: web.Response) -> web.Response:
    """Give an answer the headers that every page has."""
    answer.headers.update(HEADERS)
    return answer


@cache
def read_asset(name: str) -> bytes:
    """Return our style or our script."""
    return (FOLDER / name).read_bytes()
