"""One warm engine for a whole process of tests: asked directly, or by the commands that it runs on any home."""

import atexit
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

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
from odf_engines.engine import EngineSession
from odf_engines.errors import EngineError
from odf_engines.host.session import HostSession
from odf_engines.registry import get_engine
from odf_node.engines.sessions import EngineHost
from odf_protocol.events import TransformSql
from odf_protocol.vocabulary import Vocabulary
from odf_spark.engine import SparkEngine

LENT = ("spark", "datafusion")


@cache
def process_folder() -> Path:
    """A folder for what all tests of this process share; gone with it."""
    folder = tempfile.TemporaryDirectory(prefix="odf-tests-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def prepared_engine() -> SparkEngine:
    """The engine, with the class-data archive that makes every start of it shorter."""
    engine = SparkEngine()
    try:
        engine.prepare()
    except EngineError as error:
        print(f"without a class-data archive, so slower: {error}")
    return engine


def warm_session(name: str = "spark") -> EngineSession:
    """One warm engine in its sandbox, started when it is first asked; every request has a Spark session of its own.

    A test that stopped waiting may leave a request at work in a thread: the next one waits for its end.
    """
    return _open_warm(name)


@cache
def _open_warm(name: str) -> EngineSession:
    workspace = process_folder() / "engine" / name
    workspace.mkdir(parents=True)
    engine = prepared_engine() if name == "spark" else get_engine(name)
    session = engine.open(workspace, Limits(memory_bytes=2 * 1024**3, wall_s=600.0))
    assert isinstance(session, HostSession)
    ask, turn = session._ask, threading.Lock()

    def ask_in_turn(*query_text: Any, **options: Any) -> Any:
        with turn:
            return ask(*query_text, **options)

    session._ask = ask_in_turn  # type: ignore[method-assign]
    atexit.register(session.close)
    return session


@contextmanager
def lent_engine() -> Iterator[None]:
    """Let commands and nodes of this process ask its warm engines where each would start its own for its operator."""
    find_warm = EngineHost._find_warm

    def lent(host: EngineHost, name: str) -> EngineSession | None:
        return host._watched(_LentSession(warm_session(name)), name) if name in LENT else find_warm(host, name)

    EngineHost._find_warm = lent  # type: ignore[method-assign]
    try:
        yield
    finally:
        EngineHost._find_warm = find_warm  # type: ignore[method-assign]


@contextmanager
def lent_to_untrusted() -> Iterator[None]:
    """Let commands that run in this process re-execute foreign datasets on its warm engine.

    A node starts an engine for each of them; here what is asked is what comes of the steps, not who ran them before.
    """

    @contextmanager
    def foreign_session(_host: EngineHost, _name: str) -> Iterator[EngineSession]:
        yield warm_session()

    found = EngineHost.foreign_session
    EngineHost.foreign_session = foreign_session  # type: ignore[method-assign]
    try:
        yield
    finally:
        EngineHost.foreign_session = found  # type: ignore[method-assign]


class _LentSession:
    """The warm engine in other hands: whoever ends it gives it back."""

    def __init__(self, session: EngineSession) -> None:
        self._session = session

    def start(self) -> None:
        self._session.start()

    def transform(self, request: TransformRequest) -> TransformResponse:
        return self._session.transform(request)

    def ingest(self, request: IngestRequest) -> IngestResponse:
        return self._session.ingest(request)

    def convert(self, request: IngestRequest) -> PreparedRows:
        return self._session.convert(request)

    def preprocess(self, transform: TransformSql, rows: Path) -> QueryResponse:
        return self._session.preprocess(transform, rows)

    def query(self, request: QueryRequest) -> QueryResponse:
        return self._session.query(request)

    def check(
        self, transform: TransformSql, inputs: Sequence[QueryTable], *, vocabulary: Vocabulary | None = None
    ) -> Grade:
        return self._session.check(transform, inputs, vocabulary=vocabulary)

    def stop(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None: ...
