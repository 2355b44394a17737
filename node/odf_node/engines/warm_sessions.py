"""Engines that a daemon keeps warm: one session of each, shared by what the daemon does for its operator.

Starting an engine takes seconds and most requests a fraction of one. A request has the shared session to itself, and
what it made is moved to the caller before the next one begins. A caller that would wait for longer than a start takes
opens a session of its own and stays with it.

Source: clauses WARM-2, WARM-3, WARM-5 and WARM-8 to WARM-10 in ``spec/extensions/engine-contract.md``.
"""

import dataclasses
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from odf_engines.contract import (
    Grade,
    IngestRequest,
    IngestResponse,
    Limits,
    PreparedRows,
    QueryRequest,
    QueryResponse,
    QueryTable,
    TransformRequest,
    TransformResponse,
)
from odf_engines.engine import EngineSession, ReportsProgress
from odf_engines.errors import EngineError, EngineFailureError, LimitExceededError
from odf_engines.registry import get_engine
from odf_engines.sandbox.disk import remove_tree
from odf_node.engine_workspace import EngineWorkspace
from odf_node.program_files import build_of_program
from odf_protocol.events import TransformSql
from odf_protocol.vocabulary import Vocabulary

IDLE_S: Final = 600.0  # guess: memory of an engine that nothing used for ten minutes is better spent elsewhere
BUSY_S: Final = 5.0
"""How long a request waits for another's end: about as long as a session of its own takes to start.  # guess"""
END_S: Final = 10.0  # guess: an engine that is killed is gone within a second on an idle machine
MAX_REQUESTS: Final = 500  # guess: a session is replaced before its limit of processor time could matter
_POLL_S: Final = 0.05  # how late the end of a caller that waits can be noticed
_LOOKS: Final = 10  # at idle sessions, in the time after which one is closed

Result = TypeVar("Result")
Answer = TypeVar("Answer", TransformResponse, IngestResponse, PreparedRows, QueryResponse)


class WarmEngines:
    """The shared sessions of one daemon, by the names of installed engines; each is opened by its first request.

    Args:
        folder: Where the engines of the home work.
        idle_s: A session that was not asked for so long is closed.
        busy_s: How long a request waits for another's end.
    """

    def __init__(self, folder: Path, *, idle_s: float = IDLE_S, busy_s: float = BUSY_S) -> None:
        self._workspace = EngineWorkspace(folder)
        self._idle_s, self._busy_s = idle_s, busy_s
        self._engines: dict[str, _WarmEngine] = {}
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._close_idle, name="warm engines", daemon=True)

    def start(self) -> None:
        """Begin to close what is idle."""
        self._thread.start()

    def lend(self, name: str, folder: Path, open_own: Callable[[], EngineSession]) -> "LentSession":
        """Give the shared session of an engine for the work of one caller, who closes it.

        Args:
            name: Of an installed engine.
            folder: Of the caller, on the file system of the home: what requests make is moved there.
            open_own: Opens a session of the caller's own, for when the shared one is busy.
        """
        with self._lock:
            if name.lower() not in self._engines:
                self._engines[name.lower()] = _WarmEngine(name, self._open, self._ends)
            return LentSession(self._engines[name.lower()], self._busy_s, folder, open_own)

    def end(self) -> bool:
        """End all sessions at once: requests that run or come later fail. Say whether all are gone in time."""
        give_up_s = time.monotonic() + END_S
        self._ends.set()
        with self._lock:
            engines = tuple(self._engines.values())
        for engine in engines:
            engine.stop()
        are_gone = [engine.close(max(0.0, give_up_s - time.monotonic())) for engine in engines]
        if self._thread.ident is not None:
            self._thread.join()
        if all(are_gone):
            self._workspace.close()
        return all(are_gone)

    def _open(self, name: str) -> EngineSession:
        with self._lock:
            folder = self._workspace.path
        return get_engine(name).open(folder, Limits())

    def _close_idle(self) -> None:
        while not self._ends.wait(self._idle_s / _LOOKS):
            with self._lock:
                engines = tuple(self._engines.values())
            for engine in engines:
                engine.close_idle(self._idle_s)


class _WarmEngine:
    """The session of one engine, and whose turn it is to ask it."""

    def __init__(self, name: str, open_session: Callable[[str], EngineSession], ends: threading.Event) -> None:
        self._name, self._open_session, self._ends = name, open_session, ends
        self._turn = threading.Lock()
        self._change = threading.Lock()  # of the session; who ends it has no turn
        self._session: EngineSession | None = None
        self._build, self._requests, self._used_s = "", 0, 0.0

    @contextmanager
    def taking_turn(self, wait_s: float, is_stopped: Callable[[], bool]) -> Iterator[bool]:
        """Wait for the end of the request that runs; gives False where it goes on for longer.

        Raises:
            EngineFailureError: The caller, or all of it, was stopped.
        """
        give_up_s = time.monotonic() + wait_s
        while not (is_mine := self._turn.acquire(timeout=_POLL_S)):
            if is_stopped() or self._ends.is_set():
                raise EngineFailureError("the engine was stopped")
            if time.monotonic() >= give_up_s:
                break
        try:
            yield is_mine
        finally:
            if is_mine:
                self._used_s = time.monotonic()
                self._turn.release()

    def get_session(self) -> EngineSession:
        """Return the session for one request, a new one where there is none that can be used; needs the turn.

        Raises:
            SandboxUnavailableError, EngineMissingError: It cannot be opened.
            EngineFailureError: All of it was stopped.
        """
        build = build_of_program()
        # What it computed would be stated to be of the files that are here now.
        if self._requests >= MAX_REQUESTS or self._build != build:
            self.discard()
            self._build = build
        self._requests += 1
        with self._change:
            if self._ends.is_set():
                raise EngineFailureError("the engine was stopped")
            if self._session is None:
                self._session = self._open_session(self._name)
            return self._session

    def discard(self) -> None:
        """Close the session; needs the turn."""
        with self._change:
            session, self._session, self._requests = self._session, None, 0
        if session is not None:
            session.close()

    def close_idle(self, idle_s: float) -> None:
        """Close the session where no request runs and none came for so long."""
        if self._turn.acquire(blocking=False):
            try:
                if time.monotonic() - self._used_s > idle_s:
                    self.discard()
            finally:
                self._turn.release()

    def stop(self) -> None:
        """End the session's process, from any thread."""
        with self._change:
            if self._session is not None:
                self._session.stop()

    def close(self, wait_s: float) -> bool:
        """Close the session once its request has ended, and say whether that was within ``wait_s``."""
        if is_mine := self._turn.acquire(timeout=wait_s):
            try:
                self.discard()
            finally:
                self._turn.release()
        return is_mine


class LentSession:
    """An ``EngineSession`` of one caller: the shared one for each request, or its own once that was busy."""

    def __init__(self, engine: _WarmEngine, busy_s: float, folder: Path, open_own: Callable[[], EngineSession]) -> None:
        """See ``WarmEngines.lend``."""
        self._engine, self._busy_s, self._open_own = engine, busy_s, open_own
        self._folder, self._numbers = Path(tempfile.mkdtemp(prefix="lent-", dir=folder)), count()
        self._own: EngineSession | None = None
        self._asked: EngineSession | None = None  # while a request of this caller runs on it
        self._lock = threading.Lock()
        self._is_stopped = False
        self.on_progress: Callable[[int], None] = lambda _count: None

    def start(self) -> None:
        """See ``EngineSession``."""
        self._ask(lambda session: session.start())

    def transform(self, request: TransformRequest) -> TransformResponse:
        """See ``EngineSession``."""
        return self._ask(lambda session: self._take(session.transform(request)))

    def ingest(self, request: IngestRequest) -> IngestResponse:
        """See ``EngineSession``."""
        return self._ask(lambda session: self._take(session.ingest(request)))

    def convert(self, request: IngestRequest) -> PreparedRows:
        """See ``EngineSession``."""
        return self._ask(lambda session: self._take(session.convert(request)))

    def preprocess(self, transform: TransformSql, rows: Path) -> QueryResponse:
        """See ``EngineSession``."""
        return self._ask(lambda session: self._take(session.preprocess(transform, rows)))

    def query(self, request: QueryRequest) -> QueryResponse:
        """See ``EngineSession``."""
        return self._ask(lambda session: self._take(session.query(request)))

    def check(
        self, transform: TransformSql, inputs: Sequence[QueryTable], *, vocabulary: Vocabulary | None = None
    ) -> Grade:
        """See ``EngineSession``."""
        return self._ask(lambda session: session.check(transform, inputs, vocabulary=vocabulary))

    def stop(self) -> None:
        """See ``EngineSession``; a request of another caller goes on."""
        with self._lock:
            self._is_stopped = True
            for session in (self._asked, self._own):
                if session is not None:
                    session.stop()

    def close(self) -> None:
        """See ``EngineSession``; the shared session stays."""
        if self._own is not None:
            self._own.close()
        remove_tree(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _ask(self, run: Callable[[EngineSession], Result]) -> Result:
        if self._own is None:
            with self._engine.taking_turn(self._busy_s, lambda: self._is_stopped) as is_mine:
                if is_mine:
                    return self._ask_shared(run)
            own = self._open_own()
            with self._lock:
                self._own = own
                if self._is_stopped:
                    own.stop()
        return run(self._own)

    def _ask_shared(self, run: Callable[[EngineSession], Result]) -> Result:
        with self._lock:
            if self._is_stopped:
                raise EngineFailureError("the engine was stopped")
            self._asked = session = self._engine.get_session()
        if isinstance(session, ReportsProgress):
            session.on_progress = lambda found: self.on_progress(found)
        try:
            answer = run(session)
        except EngineError as error:
            self._give_back(is_sound=not isinstance(error, EngineFailureError | LimitExceededError))
            raise
        except BaseException:
            self._give_back(is_sound=False)
            raise
        self._give_back(is_sound=True)
        return answer

    def _give_back(self, *, is_sound: bool) -> None:
        with self._lock:
            self._asked, is_stopped = None, self._is_stopped
        if is_stopped or not is_sound:
            self._engine.discard()

    def _take(self, answer: Answer) -> Answer:
        """Move the files of an answer out of the session's folder, which the next request may remove."""
        found = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
        moved: dict[str, Any] = {name: self._move(value) for name, value in found.items() if isinstance(value, Path)}
        return dataclasses.replace(answer, **moved)

    def _move(self, path: Path) -> Path:
        return path.rename(self._folder / f"{next(self._numbers)}-{path.name}")
