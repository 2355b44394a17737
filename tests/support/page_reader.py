"""Whoever looks at a node's pages without a script: keeps cookies, follows forms, and looks at every tag."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import aiohttp
from yarl import URL

from odf_node.configuration import AccessSettings, Configuration
from odf_node.configuration.declaration import Listen
from odf_node.http.callers import secret_hash_of
from odf_node.http.served_node import Live
from odf_node.records.access import AccessToken
from support.offers import NOW
from support.secretive_node import SecretiveNode

INSPECTOR = "odf_inspector_0123456789"
READER = "odf_reader_0123456789"

VOID = {"meta", "link", "input", "br", "img", "hr", "option"}
BLOCKS = {"td", "th", "dt", "dd", "li", "p", "h1", "h2", "h3", "a", "text", "small"}
ADDRESSES = ("href", "src", "action", "formaction", "xlink:href", "poster", "data")


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and the text that is shown."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.shown: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag
        self.shown.append(" " if tag in BLOCKS else "")

    def handle_data(self, data: str) -> None:
        if "script" not in self.open:
            self.shown.append(data)


@dataclass
class SeenPage:
    """What came back."""

    status: int
    headers: Any
    raw: bytes
    path: str

    @property
    def html(self) -> str:
        return self.raw.decode()

    @property
    def tags(self) -> Tags:
        return Tags(self.html)

    @property
    def text(self) -> str:
        return " ".join("".join(self.tags.shown).split())

    @property
    def links(self) -> list[str]:
        return [attributes["href"] for tag, attributes in self.tags.tags if tag == "a"]

    def form_words(self) -> dict[str, str]:
        """The hidden fields of its last form."""
        return {
            attributes["name"]: attributes.get("value", "")
            for tag, attributes in self.tags.tags
            if tag == "input" and attributes.get("type") == "hidden"
        }


@dataclass
class PageReader:
    """A browser of the simplest kind."""

    url: str
    session: aiohttp.ClientSession
    live: Live
    seen: list[SeenPage] = field(default_factory=list)

    async def ask(self, method: str, path: str, **options: Any) -> SeenPage:
        url = URL(self.url + path, encoded=True)
        async with self.session.request(method, url, allow_redirects=False, **options) as answer:
            page = SeenPage(answer.status, answer.headers, await answer.read(), path)
            self.seen.append(page)
            return page

    async def get(self, path: str, status: int = 200, **options: Any) -> SeenPage:
        page = await self.ask("GET", path, **options)
        assert page.status == status, (page.status, page.raw[:2000])
        return page

    async def sign_in(self, token: str, **fields: str) -> SeenPage:
        form = (await self.get("/-/sign-in")).form_words()
        return await self.ask("POST", "/-/sign-in", data={**form, "token": token, **fields})


@asynccontextmanager
async def reading(
    made: SecretiveNode, pages: str = "token", *, public_url: str | None = None, **access: Any
) -> AsyncIterator[PageReader]:
    """Serve a node, and look at it; two tokens open it."""
    node = made.node
    for secret, scopes in ((INSPECTOR, ("inspect",)), (READER, ("read",))):
        if node.store.find_token(secret_hash_of(secret)) is None:
            node.store.put_token(
                AccessToken(
                    id=secret[4:9], secret_hash=secret_hash_of(secret), label=secret, scopes=scopes, created_at=NOW
                )
            )
    live = Live(Configuration(access=AccessSettings(pages=pages, **access), listen=Listen(public_url=public_url)))
    async with (
        made.served(live=live) as stranger,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        yield PageReader(stranger.url, session, live)


def require_harmless(page: SeenPage) -> None:
    """Check that nothing of a page runs, loads or leads elsewhere but to the web, whatever it shows."""
    allowed_scripts = [{"src": "/-/pages.js", "defer": ""}]
    tags = page.tags.tags
    assert [attributes for tag, attributes in tags if tag == "script"] == allowed_scripts
    banned = {"style", "iframe", "object", "embed", "base", "img", "video", "audio", "foreignobject", "use", "animate"}
    assert not banned.intersection(tag for tag, _ in tags)
    for _tag, attributes in tags:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc"}]
        for name in ADDRESSES:
            if name in attributes:
                assert attributes[name].startswith(("/", "#", "https://", "http://", "data:,")), attributes
                assert not attributes[name].startswith("//")
