"""A browser that signed in to a node's pages."""

import re
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http.cookiejar import CookieJar

from support.nodes import RealNode


@dataclass(frozen=True)
class SignedIn:
    """A browser."""

    url: str
    opener: urllib.request.OpenerDirector

    @classmethod
    def by(cls, node: RealNode, url: str, *rights: str) -> "SignedIn":
        token = node.must("token", "create", "someone", *rights, "-o", "json").json()["token"]
        browser = cls(url, urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar())))
        browser._send("/-/sign-in", token=token)
        return browser

    def ask(self, query: str, engine: str) -> str:
        """The page with the answer."""
        return self._send("/-/sql", query=query, engine=engine)

    def _send(self, path: str, **fields: str) -> str:
        with self.opener.open(self.url + path) as page:
            hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.read().decode()))
        with self.opener.open(self.url + path, urllib.parse.urlencode(hidden | fields).encode()) as page:
            return str(page.read().decode())
