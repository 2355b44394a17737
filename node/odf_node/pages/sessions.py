"""Who signed in, for how long, and the word that each of their forms must bring back.

Kept in memory alone: whoever restarts the node ends all sessions. Of a token only its hash is kept, and asked about at
each request, so that revoking it ends its sessions too.

Source: clauses PAGES-3 and PAGES-4 in ``spec/extensions/pages.md``.
"""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LASTS_S: Final = 8 * 3600.0  # guess: a working day
MOST_SESSIONS: Final = 1_000  # guess: some hundred kB; the oldest ends where there are more
MOST_OF_ONE: Final = 20  # guess: browsers of one token
_WORD_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Session:
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
        self._open: OrderedDict[str, Session] = OrderedDict()

    def begin(self, secret_hash: bytes) -> str:
        """Begin a session for who showed a token; return the word for the cookie."""
        self._forget_ended()
        own = [word for word, each in self._open.items() if each.secret_hash == secret_hash]
        for word in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            del self._open[word]
        while len(self._open) >= MOST_SESSIONS:
            self._open.popitem(last=False)
        word = new_word()
        self._open[word] = Session(secret_hash, self._now_s() + LASTS_S)
        return word

    def find(self, word: str) -> Session | None:
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
