"""One warm session behind the server, which serves one request after the other.

All work on sessions happens in one thread, one request after the other.

Source: clause GRPC-10 of ``spec/plug-ins/engine-grpc.md``.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from odf_engines.contract import EngineFailureError, Limits
from odf_engines.engine import Engine, EngineSession

OnEnd = Callable[[Callable[[], None]], bool]

_Answer = TypeVar("_Answer")


class SessionPool:
    """Asks sessions; requests for other datasets get other sessions, so that none can prepare the ground for another.

    Args:
        engine: What to run.
        workspace: Existing folder for the sessions.
        limits: Of every session.
    """

    def __init__(self, engine: Engine, workspace: Path, limits: Limits) -> None:
        self.engine = engine
        self.limits = limits
        self._workspace = workspace
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine desk")
        self._session: EngineSession | None = None
        self._owner: object | None = None  # whose requests the session has seen; None if none yet
        self._is_stopped = False

    def open(self) -> "Future[None]":
        """Open a session before anybody asks.

        Returns:
            Done when it is warm; it fails with an ``EngineError`` if it does not start, and the next request tries
            again.

        Raises:
            SandboxUnavailableError: Isolation does not work here.
        """
        session = self._thread.submit(self._current_session).result()
        return self._thread.submit(session.start)

    def ask(self, owner: object, when_gone: OnEnd, query_text: Callable[[EngineSession], _Answer]) -> _Answer:
        """Wait for a session that has seen requests of this owner only, and ask it.

        Args:
            owner: Equal objects may share a session.
            when_gone: Takes what to call when no client waits for the answer any more; false if that is so already.
            query_text: What to do with the session.

        Raises:
            EngineError: As ``question``, or no session is possible, or nobody waits any more.
        """
        return self._thread.submit(self._ask, owner, when_gone, query_text).result()

    def close(self) -> None:
        """End everything at once; requests that wait fail; safe to repeat."""
        self._is_stopped = True
        if (session := self._session) is not None:
            session.stop()
        self._thread.shutdown(wait=True)
        self._drop_session()

    def _ask(self, owner: object, when_gone: OnEnd, query_text: Callable[[EngineSession], _Answer]) -> _Answer:
        if self._owner not in (None, owner):
            self._drop_session()
        self._owner = owner
        session = self._current_session()
        loan = _Loan(session)
        if not when_gone(loan.cancel):
            raise EngineFailureError("the caller is gone")
        try:
            return query_text(session)
        finally:
            if not loan.end():
                self._drop_session()

    def _current_session(self) -> EngineSession:
        if self._session is None:
            self._session = self.engine.open(self._workspace, self.limits)
        if self._is_stopped:
            self._session.stop()
        return self._session

    def _drop_session(self) -> None:
        session, self._session, self._owner = self._session, None, None
        if session is not None:
            session.close()


class _Loan:
    """Stops the session if the caller goes away before the end, and not after it."""

    def __init__(self, session: EngineSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._is_over = self._is_cancelled = False

    def cancel(self) -> None:
        with self._lock:
            if not self._is_over:
                self._is_cancelled = True
                self._session.stop()

    def end(self) -> bool:
        """End the loan; return whether the session can be lent again."""
        with self._lock:
            self._is_over = True
            return not self._is_cancelled
