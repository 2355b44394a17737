"""The engine that is asked first to ingest, which stays for the next command: its start costs more than all it reads.

A node starts one for each command (ENGINE-25), which takes half a second of a processor. Where a test is not about that
start, commands and nodes of this process ask one engine, in its sandbox, with requests and answers as ever.
"""

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from odf_engines.arrow.engine import ArrowEngine
from odf_engines.contract import IngestRequest, IngestResponse, Limits, PreparedRows
from odf_engines.engine import EngineSession, IngestSession
from odf_engines.errors import EngineFailureError
from odf_engines.host.session import HostSession
from odf_node.engines.sessions import EngineHost
from support.warm_engine import process_folder

_TURN = threading.Lock()
_OPEN: list[HostSession] = []


@contextmanager
def ingesting_with_one_engine() -> Iterator[None]:
    """Let every host of engines with usual limits ask the same session where it would start one of its own."""
    own = EngineHost._first_session

    def first_session(host: EngineHost, name: str) -> IngestSession:
        if name == ArrowEngine.name and name not in host._own and host.limits == Limits():
            host._own[name] = host._watched(_LentArrow(), name)
        return own(host, name)

    EngineHost._first_session = first_session  # type: ignore[method-assign]
    try:
        yield
    finally:
        EngineHost._first_session = own  # type: ignore[method-assign]


def _shared() -> HostSession:
    if not _OPEN:
        folder = process_folder() / "engine" / "ingests"
        folder.mkdir(parents=True, exist_ok=True)
        session = ArrowEngine().open(folder, Limits())
        assert isinstance(session, HostSession)
        atexit.register(session.close)
        _OPEN.append(session)
    return _OPEN[0]


class _LentArrow(EngineSession):
    """The engine in the hands of one command: to close it gives it back, to stop it ends what it does for this one."""

    def __init__(self) -> None:
        self.on_progress: Callable[[int], None] = lambda _count: None
        self._is_stopped = False
        self._asked: HostSession | None = None

    def ingest(self, request: IngestRequest) -> IngestResponse:
        return self._ask(HostSession.ingest, request)

    def convert(self, request: IngestRequest) -> PreparedRows:
        return self._ask(HostSession.convert, request)

    def stop(self) -> None:
        self._is_stopped = True
        if self._asked is not None:
            _OPEN.clear()
            self._asked.stop()

    def close(self) -> None: ...

    def _ask(self, operation: Callable[[HostSession, IngestRequest], Any], request: IngestRequest) -> Any:
        with _TURN:
            self._asked = _shared()
            self._asked.on_progress = self.on_progress
            try:
                if self._is_stopped:
                    raise EngineFailureError("the session was stopped")
                return operation(self._asked, request)
            finally:
                self._asked = None
