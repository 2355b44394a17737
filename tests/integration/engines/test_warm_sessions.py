"""Clauses WARM-3, WARM-5 and WARM-8 to WARM-10: sessions that a daemon shares; real engines in their sandboxes."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odf_engines.contract import Limits, QueryRequest, QueryResponse
from odf_engines.engine import EngineSession
from odf_engines.errors import EngineFailureError, InvalidQueryError, LimitExceededError
from odf_engines.host.session import HostSession
from odf_engines.registry import get_engine
from odf_node.engine_workspace import EngineWorkspace, sweep_workspaces
from odf_node.engines import warm_sessions
from odf_node.engines.warm_sessions import LentSession, WarmEngines
from support.command_line import are_gone

WAIT_S = 240  # guess: a machine that is slow and busy
LIMITS = Limits(wall_s=WAIT_S)
NUMBERS = "(SELECT unnest(range(0, 100000)) AS n)"
ENDLESS = f"SELECT count(*) AS n FROM {NUMBERS} a, {NUMBERS} b, {NUMBERS} c WHERE a.n + b.n + c.n < 0"

pytestmark = pytest.mark.timeout(1800)


class Callers:
    """Callers of shared sessions, each with a folder and threads of its own."""

    def __init__(self, folder: Path, **settings: float) -> None:
        self.engines = folder / "engines"
        self.warm = WarmEngines(self.engines, **settings)
        self.opened: list[EngineSession] = []
        self._stack = ExitStack()
        self._threads = ThreadPoolExecutor(4)
        self._own = EngineWorkspace(self.engines)

    def lend(self, name: str = "datafusion") -> LentSession:
        return self._stack.enter_context(self.warm.lend(name, self._own.path, lambda: self._open(name)))

    def _open(self, name: str) -> EngineSession:
        self.opened.append(get_engine(name).open(self._own.path, Limits()))
        return self.opened[-1]

    def ask_beside(self, session: LentSession, sql: str) -> "Future[int]":
        return self._threads.submit(ask, session, sql)

    def shared(self) -> HostSession | None:
        session = self.warm._engines["datafusion"]._session
        assert session is None or isinstance(session, HostSession)
        return session

    def process(self) -> int:
        session = self.shared()
        assert session is not None
        assert session._process is not None
        return session._process.process_id

    def is_asked(self) -> bool:
        """Whether a request is at work: the folder of its inputs is there as long."""
        session = self.shared()
        return session is not None and any((session.folder / "in").iterdir())

    def close(self) -> None:
        assert self.warm.end()
        self._stack.close()
        self._threads.shutdown()
        self._own.close()
        assert [*self.engines.glob("process-*")] == []


@pytest.fixture
def callers(tmp_path: Path) -> Iterator[Callers]:
    callers = Callers(tmp_path, busy_s=0.1)
    yield callers
    callers.close()


def query(session: LentSession, sql: str) -> QueryResponse:
    return session.query(QueryRequest(tables=(), sql=sql, limits=LIMITS))


def ask(session: LentSession, sql: str) -> int:
    """Ask for one number."""
    return int(pq.read_table(query(session, sql).result_path).column(0)[0].as_py())


def wait_until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_callers_share_a_process_and_each_keeps_what_it_was_given(callers: Callers) -> None:
    first, second = callers.lend(), callers.lend()
    answers = [query(first, "SELECT 1 AS n")]
    process = callers.process()
    answers += [query(second, "SELECT 2 AS n"), query(first, "SELECT 3 AS n")]
    assert callers.process() == process
    assert [pq.read_table(each.result_path).column("n")[0].as_py() for each in answers] == [1, 2, 3]
    first.close()
    assert [each.result_path.exists() for each in answers] == [False, True, False]
    assert ask(second, "SELECT 4") == 4
    assert callers.process() == process
    assert callers.opened == []


def test_error_of_a_query_leaves_the_engine_warm_and_a_limit_replaces_it(callers: Callers) -> None:
    session = callers.lend()
    assert ask(session, "SELECT 1") == 1
    process = callers.process()
    with pytest.raises(InvalidQueryError):
        ask(session, "SELECT nothing")
    assert callers.process() == process

    with pytest.raises(LimitExceededError):
        session.query(QueryRequest(tables=(), sql=ENDLESS, limits=Limits(wall_s=0.5)))
    assert callers.shared() is None
    assert are_gone({process})
    assert ask(session, "SELECT 2") == 2
    assert callers.process() != process


def test_caller_that_finds_the_engine_busy_for_long_opens_its_own(callers: Callers) -> None:
    first, second = callers.lend(), callers.lend()
    running = callers.ask_beside(first, ENDLESS)
    wait_until(callers.is_asked)
    assert ask(second, "SELECT 1") == 1
    assert len(callers.opened) == 1
    assert not running.done()
    first.stop()
    with pytest.raises(EngineFailureError):
        running.result(WAIT_S)


def test_caller_waits_for_a_request_that_ends_soon(tmp_path: Path) -> None:
    callers = Callers(tmp_path, busy_s=WAIT_S)
    running = callers.ask_beside(callers.lend(), "SELECT sum(a.n) FROM (SELECT unnest(range(0, 2000000)) AS n) a")
    assert ask(callers.lend(), "SELECT 1") == 1
    assert running.result(WAIT_S) == 1999999000000
    assert callers.opened == []
    callers.close()


def test_caller_that_is_stopped_ends_its_request_and_no_other(callers: Callers) -> None:
    """WARM-5."""
    first, second = callers.lend(), callers.lend()
    running = callers.ask_beside(first, ENDLESS)
    wait_until(callers.is_asked)
    process = callers.process()
    second.stop()
    assert not are_gone({process})
    with pytest.raises(EngineFailureError):
        ask(second, "SELECT 1")
    assert not running.done()

    first.stop()
    with pytest.raises(EngineFailureError):
        running.result(WAIT_S)
    wait_until(lambda: are_gone({process}))
    assert ask(callers.lend(), "SELECT 1") == 1


def test_caller_that_waits_and_is_stopped_waits_no_longer(tmp_path: Path) -> None:
    callers = Callers(tmp_path, busy_s=10 * WAIT_S)
    first, second = callers.lend(), callers.lend()
    running = callers.ask_beside(first, ENDLESS)
    wait_until(callers.is_asked)
    waiting = callers.ask_beside(second, "SELECT 1")
    second.stop()
    with pytest.raises(EngineFailureError, match="stopped"):
        waiting.result(WAIT_S)
    assert not running.done()
    assert callers.warm.end()
    with pytest.raises(EngineFailureError):
        running.result(WAIT_S)
    callers.close()


def test_end_ends_what_runs_at_once_and_nothing_starts_after_it(callers: Callers) -> None:
    """WARM-10."""
    first, second = callers.lend(), callers.lend()
    running = callers.ask_beside(first, ENDLESS)
    wait_until(callers.is_asked)
    process = callers.process()
    assert callers.warm.end()
    assert are_gone({process})
    with pytest.raises(EngineFailureError):
        running.result(WAIT_S)
    with pytest.raises(EngineFailureError, match="stopped"):
        ask(second, "SELECT 1")
    assert callers.shared() is None


def test_engine_that_is_idle_is_closed_and_one_that_is_asked_is_not(tmp_path: Path) -> None:
    """WARM-9."""
    callers = Callers(tmp_path, idle_s=0.2)
    callers.warm.start()
    running = callers.ask_beside(callers.lend(), ENDLESS)
    wait_until(callers.is_asked)
    process = callers.process()
    time.sleep(0.5)  # longer than it may be idle
    assert not are_gone({process})
    assert not running.done()
    callers.close()

    callers = Callers(tmp_path, idle_s=0.2)
    callers.warm.start()
    session = callers.lend()
    assert ask(session, "SELECT 1") == 1
    wait_until(lambda: callers.shared() is None)
    assert ask(session, "SELECT 2") == 2
    callers.close()


@pytest.mark.parametrize("changed", ["requests", "files"])
def test_session_is_replaced_after_many_requests_and_where_the_program_has_changed(
    callers: Callers, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """WARM-9."""
    session = callers.lend()
    assert ask(session, "SELECT 1") == 1
    assert ask(session, "SELECT 1") == 1
    before = callers.shared()
    if changed == "requests":
        monkeypatch.setattr(warm_sessions, "MAX_REQUESTS", 2)
    else:
        monkeypatch.setattr(warm_sessions, "build_of_program", lambda: "another build")
    assert ask(session, "SELECT 2") == 2
    replaced = callers.shared()
    assert replaced is not before
    assert ask(session, "SELECT 3") == 3
    assert callers.shared() is replaced


def test_many_callers_at_once_are_all_answered(callers: Callers) -> None:
    sessions = [callers.lend() for _ in range(4)]
    asked = [callers.ask_beside(each, f"SELECT {number}") for number, each in enumerate(sessions)]
    assert [each.result(WAIT_S) for each in asked] == [0, 1, 2, 3]


def test_sweep_removes_what_versions_before_kept_for_warm_engines(tmp_path: Path) -> None:
    workspace = EngineWorkspace(tmp_path)
    assert workspace.path.exists()
    for name in ("spark.key", "spark.lock", "spark.sock", "datafusion.key"):
        (tmp_path / name).touch()
    sweep_workspaces(tmp_path)
    assert [*tmp_path.iterdir()] == [workspace.path]
    workspace.close()


def test_threads_of_shared_sessions_end_with_them(tmp_path: Path) -> None:
    before = threading.active_count()
    callers = Callers(tmp_path)
    callers.warm.start()
    assert ask(callers.lend(), "SELECT 1") == 1
    callers.close()
    assert threading.active_count() == before
