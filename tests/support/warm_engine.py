"""One warm engine for a whole process of tests: asked directly, or by the commands that it runs on any home."""

import atexit
import math
import tempfile
import threading
import time
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
from odf_engines.spark.engine import SparkEngine
from odf_node.adapters.keeper_place import KeeperPlace
from odf_node.adapters.warm_engines import Keeper
from odf_node.engine_workspace import EngineWorkspace
from odf_node.engines.sessions import EngineHost
from odf_node.home_folder import HomeFolder
from odf_node.program_files import build_of_program
from odf_protocol.events import TransformSql
from odf_protocol.vocabulary import Vocabulary

LENT = ("spark", "datafusion")
LENT_IDLE_S = "60"  # long enough for a command to look for a warm engine at all
APPEAR_S = 240.0


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

    A command that was killed may leave a request at work in the keeper's thread: the next one waits for its end.
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
def lent_engine(home: Path) -> Iterator[dict[str, str]]:
    """Let commands on ``home`` find the warm engine of this process, as they find one that an earlier command left.

    Meanwhile the home has links to a keeper that runs here; nothing in the commands differs.

    Returns:
        The environment in which commands look for a warm engine.
    """
    lenders = [_lender(name) for name in LENT]
    links = {}
    for name, keeper in zip(LENT, lenders, strict=True):
        place, lender = KeeperPlace(HomeFolder(home).engines, name), keeper.place
        for folder in (home, place.folder.parent, place.folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        links |= {place.socket: lender.socket, place.key: lender.key, place.lock: lender.lock}
    for link, target in links.items():
        link.symlink_to(target)
    try:
        # It is the one that they find; another one would be a process of each home.
        yield {"ODF_NODE_ENGINE_IDLE_S": LENT_IDLE_S}
    finally:
        for link in links:
            link.unlink(missing_ok=True)
    assert all(keeper.lends for keeper in lenders), "commands were answered by an engine of the keeper's own"


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


@cache
def _lender(name: str) -> "_Lender":
    """Run a keeper of a warm engine in a thread."""
    place = KeeperPlace(process_folder() / "keeper", name)
    place.get_or_create_key()
    keeper = _Lender(
        place,
        EngineWorkspace(place.folder),
        build_of_program(),
        math.inf,
        ends_when_idle=False,
        _session=_LentSession(warm_session(name)),
    )
    thread = threading.Thread(target=keeper.run, name=f"keeper of {name}", daemon=True)
    thread.start()
    atexit.register(thread.join)
    atexit.register(keeper.end)
    give_up_at = time.monotonic() + APPEAR_S
    while not place.socket.exists():
        assert thread.is_alive()
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    return keeper


class _Lender(Keeper):
    """A keeper that keeps the warm engine also when a command goes away in the middle, and takes over none."""

    @property
    def lends(self) -> bool:
        """Whether the engine that it has is the one that was lent."""
        return isinstance(self._session, _LentSession)

    def _wait_for_turn(self) -> None:
        # There is none; what a keeper takes over would stand in the place of what is lent.
        return None

    def _forget_outputs(self) -> None:
        super()._forget_outputs()
        self._requests = 0  # what is lent is not replaced by another one after many requests

    def _end_session(self) -> None:
        if not self.lends:
            super()._end_session()


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
