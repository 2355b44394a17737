"""One look at one page: who looks, what they may see, what they asked for.

Source: clauses PAGES-1 to PAGES-6 in ``spec/plug-ins/pages.md``.
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from aiohttp import web

from odf_node.composition import Node
from odf_node.errors import UsageError
from odf_node.http.callers import get_caller
from odf_node.http.served_node import LIVE, NODE
from odf_node.ports.access import calling, get_requester
from odf_node.records.access import INSPECT_SCOPE, AccessToken, ReadGrants, TokenState, read_grants
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import DatasetNotFoundError
from odf_node.semaphore import FairSemaphore, TurnLimits
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.names import DatasetName

LASTS_S: Final = 8 * 3600.0  # guess: a working day
MAX_SESSIONS: Final = 1_000  # guess: some hundred kB; the oldest ends where there are more
MAX_OF_ONE: Final = 20  # guess: browsers of one token
_WORD_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class SignedInSession:
    """Somebody who signed in.

    Attributes:
        secret_hash: Of the token that was shown.
        ends_s: By the clock that nobody sets (DAEMON-15).
    """

    secret_hash: bytes
    ends_s: float


class Sessions:
    """Sessions by the word in the browser's cookie; used on the event loop."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._key = secrets.token_bytes(_WORD_BYTES)
        self._open: OrderedDict[str, SignedInSession] = OrderedDict()

    def begin(self, secret_hash: bytes) -> str:
        """Begin a session for who showed a token; return the word for the cookie."""
        self._forget_ended()
        own = [word for word, each in self._open.items() if each.secret_hash == secret_hash]
        for word in own[: max(0, len(own) - MAX_OF_ONE + 1)]:
            del self._open[word]
        while len(self._open) >= MAX_SESSIONS:
            self._open.popitem(last=False)
        word = new_word()
        self._open[word] = SignedInSession(secret_hash, self._now_s() + LASTS_S)
        return word

    def find(self, word: str) -> SignedInSession | None:
        """Return the session of a cookie; None: there is none, or it has ended."""
        found = self._open.get(word)
        return found if found is not None and found.ends_s > self._now_s() else None

    def end(self, word: str) -> None:
        """End a session, if there is one."""
        self._open.pop(word, None)

    def form_word(self, cookie: str) -> str:
        """Return what a form must bring back that was shown to the holder of a cookie; others cannot know it."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()

    def is_form_word(self, cookie: str, given: str) -> bool:
        """Say whether a form brought back the word that goes with the cookie."""
        return hmac.compare_digest(self.form_word(cookie).encode(), given.encode("utf-8", "replace"))

    def _forget_ended(self) -> None:
        now_s = self._now_s()
        for word in [word for word, each in self._open.items() if each.ends_s <= now_s]:
            del self._open[word]


def new_word() -> str:
    """Make a word for a cookie that nobody can guess."""
    return secrets.token_urlsafe(_WORD_BYTES)


THREADS: Final = 4  # guess: what other routes do in threads must not wait for people's pages
LONG_AT_ONCE: Final = 2  # guess: pages that read rows, each in a process of its own
LONG_WAITING: Final = 16  # guess
_MAX_DIGITS: Final = 15

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at pages.

    Attributes:
        peer: Names them for turns.
        reads: Which datasets they may read.
        token: What they signed in with; None: a stranger.
        cookie: Of their session; empty where they have none.
    """

    peer: str
    reads: ReadGrants
    token: AccessToken | None = None
    cookie: str = ""

    @property
    def inspects(self) -> bool:
        """Whether they see what the operator sees (PAGES-5)."""
        return self.token is not None and INSPECT_SCOPE in self.token.scopes

    def make_context(self) -> Context:
        """Make a context for a thread, in which they are who asks: by what they signed in with, too (AUDIT-2)."""
        with calling(replace(get_requester(), name=self.peer)):
            return copy_context()


@dataclass(frozen=True, slots=True)
class PageAccess:
    """What all pages of a node share."""

    node: Node
    sessions: Sessions = field(default_factory=Sessions)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS, "pages"))
    semaphore: FairSemaphore = field(
        default_factory=lambda: FairSemaphore(lambda: TurnLimits(LONG_AT_ONCE, LONG_WAITING))
    )


PAGES: Final = web.AppKey("pages", PageAccess)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a page is made from, in a thread: no page sees the request itself.

    Attributes:
        node: What is looked at.
        viewer: Who looks.
        words: Parts of the path, by name.
        query: What stands behind the question mark; of several of a name, all.
        running: What runs in the node now: what it is, how many, and how many wait.
    """

    node: Node
    viewer: Viewer
    words: dict[str, str]
    query: dict[str, list[str]]
    running: tuple[tuple[str, int, int], ...] = ()

    def get_dataset(self) -> DatasetRecord:
        """Return the dataset that the path names, by the name under which the viewer knows it.

        Raises:
            DatasetNotFoundError: It is not here, or not for this viewer, which look alike (EX-3).
        """
        text = self.words["dataset"]
        try:
            which = DatasetId.parse(text) if text.startswith(DatasetId.scheme) else DatasetName.parse(text)
        except (MalformedError, UnsupportedError):
            raise DatasetNotFoundError("of this name") from None
        record = self.find_dataset(which)
        if record is None:
            raise DatasetNotFoundError("of this name")
        return record

    def find_dataset(self, which: DatasetId | DatasetName) -> DatasetRecord | None:
        """Return a dataset; None: it is not here, or not for this viewer."""
        return self.node.store.find_readable(which, self.viewer.reads)

    def list_datasets(self) -> tuple[DatasetRecord, ...]:
        """Return the datasets that the viewer may read, by name."""
        return self.node.store.list_readable(self.viewer.reads)

    def get_text(self, name: str) -> str:
        """Return one value of the query; empty where there is none."""
        values = self.query.get(name, [""])
        return values[0]

    def find_number(self, name: str) -> int | None:
        """Return one whole number of the query; None where there is none.

        Raises:
            UsageError: It is no such number.
        """
        text = self.get_text(name).strip()
        return None if not text else to_number(text, name)

    def get_number_of_path(self, name: str) -> int:
        """Return a number of the path; errors as ``find_number``."""
        return to_number(self.words[name], name)


def to_number(text: str, what: str) -> int:
    """Read a whole number, not below zero.

    Raises:
        UsageError: It is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise UsageError(f"{what}: expected a whole number")
    return int(text)


async def find_viewer(request: web.Request) -> Viewer:
    """Find out who looks: by a token that came with the request, or by the cookie of a session."""
    caller = get_caller(request)
    if caller.token is not None:
        return Viewer(caller.peer, caller.reads, caller.token)
    cookie = find_cookie(request, cookie_name(request))
    session = request.app[PAGES].sessions.find(cookie)
    node = request.app[NODE]
    # At each request: a token that was revoked opens nothing any more.
    token = None if session is None else await asyncio.to_thread(node.store.find_token, session.secret_hash)
    if token is None or token.state_at(node.clock.now()) is not TokenState.VALID:
        return Viewer(caller.peer, caller.reads)
    anonymous = request.app[LIVE].configuration.access.anonymous
    return Viewer(f"token:{token.id}", read_grants(token.scopes, anonymous=anonymous), token, cookie)


def cookie_name(request: web.Request) -> str:
    """Name the cookie of a session; browsers keep those of several nodes of one machine apart by nothing else.

    Where the line is encrypted the name begins so that they take it from this host alone, and from no neighbour of its
    name: RFC 6265bis, "The __Host- Prefix".
    """
    return f"{'__Host-' if is_encrypted(request) else ''}odf_node_{request.url.port}"


def is_encrypted(request: web.Request) -> bool:
    """Say whether browsers reach this node on an encrypted line."""
    public = request.app[LIVE].configuration.listen.public_url or ""
    return request.secure or public.startswith("https:")


def find_cookie(request: web.Request, name: str) -> str:
    """Return a cookie; empty where there is none, or several: a neighbour can set one beside it, for a path of ours."""
    parts = [part.partition("=") for text in request.headers.getall("Cookie", ()) for part in text.split(";")]
    if sum(each.strip() == name for each, _, _ in parts) != 1:
        return ""
    return request.cookies.get(name, "")
