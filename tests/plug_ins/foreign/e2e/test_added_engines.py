"""Clauses ADDED-1 to ADDED-10: engines of others, added from files, in their sandbox and in a node."""

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odf_engines.contract import GradeLevel, Limits, QueryTable, TransformRequest
from odf_engines.engine import EngineSession
from odf_engines.errors import EngineFailureError, InvalidQueryError, LimitExceededError
from odf_engines.host.session import HostSession
from odf_foreign.added.content import digest_of_contents
from odf_foreign.added.description import AddedForm, EngineDescription, EngineStart
from odf_foreign.added.engine import AddedEngine, RootRuntime, find_runtime
from odf_foreign.engine_folder import EngineFolder, WantedStart
from odf_node.home_folder import HomeFolder
from odf_protocol.did import DatasetId
from odf_protocol.vocabulary import Vocabulary
from support.contract_engine import write_engine
from support.engine_archives import Entry, docker_archive, link, program, tar_of, write
from support.transforms import (
    ORDERS,
    SYSTEM_TIME,
    orders_input,
    output_rows,
    transform_request,
    transform_sql,
    write_orders,
)

MIB = 1024 * 1024
ROWS = [(number, 0, number * 1000, number, "new", 1.5 * number) for number in range(10)]
LIMITS = Limits(memory_bytes=1024 * MIB, wall_s=60.0, processes=100, output_bytes=64 * MIB)


def program_engine(folder: Path, behaviour: str = "honest") -> AddedEngine:
    """An engine as a node makes it of a program."""
    program = write_engine(folder / f"{behaviour}.program", behaviour)
    start = EngineStart(command=("/opt/engine/program",))
    digest = digest_of_contents(program, start, None)
    description = EngineDescription(
        name="other", version="", digest=str(digest), form=AddedForm.PROGRAM, start=start, file_bytes=0,
        added_at="2024-01-01T00:00:00Z",
    )  # fmt: skip
    return AddedEngine(description, program, folder / "cache")


@contextmanager
def opened(folder: Path, behaviour: str = "honest", limits: Limits = LIMITS) -> Iterator[EngineSession]:
    (folder / "work").mkdir()
    with program_engine(folder, behaviour).open(folder / "work", limits) as session:
        yield session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineSession]:
    with opened(tmp_path_factory.mktemp("engine")) as session:
        yield session


def step(folder: Path, query: str = "ALL", **options: Any) -> TransformRequest:
    """A step over ten orders, of datasets that have identities."""
    source = orders_input([write_orders(folder / "0.parquet", ROWS)], (0, 9), [7_000])
    request = transform_request(query, replace(source, dataset_id=str(DatasetId(b"\x02" * 32))), **options)
    return replace(request, dataset_id=str(DatasetId(b"\x01" * 32)))


def test_step_is_run_by_the_program(session: EngineSession, tmp_path: Path) -> None:
    response = session.transform(step(tmp_path, next_offset=5))
    assert [row[1] for row in output_rows(response)] == list(range(10))
    assert response.offset_interval is not None
    assert (response.offset_interval.start, response.offset_interval.end) == (5, 14)
    assert response.watermark is not None
    assert response.watermark.unix_ms == 7_000
    assert response.logical_hash is not None


def test_watermark_never_goes_back(session: EngineSession, tmp_path: Path) -> None:
    """ADDED-8: the contract does not tell an engine what the step before reported."""
    request = step(tmp_path, prev_watermark_ms=8_000)
    assert session.transform(request).watermark == request.prev_watermark


def test_step_without_rows_states_its_columns(session: EngineSession, tmp_path: Path) -> None:
    request = step(tmp_path)
    nothing = replace(request.inputs[0], slices=(), offset_interval=None, watermarks=())
    response = session.transform(replace(request, inputs=(nothing,)))
    assert response.data_path is None
    assert response.schema.names[-3:] == ["id", "status", "amount"]


def test_query_is_tried_before_it_is_declared(session: EngineSession) -> None:
    """ADDED-9."""
    tables = [QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)]
    grade = session.check(transform_sql("ALL"), tables)
    assert (grade.level, grade.transform_class) == (GradeLevel.PINNED, None)
    assert "holds them to the digest" in grade.findings[0].reason
    refused = session.check(transform_sql("NONSENSE"), tables)
    assert refused.level is GradeLevel.REJECTED
    assert refused.findings[0].reason == "NONSENSE is no query"


def test_invalid_query_is_the_querys_fault_and_the_session_goes_on(session: EngineSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError, match="NONSENSE is no query"):
        session.transform(step(tmp_path, "NONSENSE"))
    assert session.transform(step(tmp_path)).statistics.rows_out == 10


@pytest.mark.parametrize(
    ("behaviour", "stated"),
    [
        ("wrong-offsets-in-file", "offsets do not count from 0"),
        ("wrong-interval", "asked for rows from offset 0, it says 5"),
        ("wrong-system-time", "expected system time"),
        ("wrong-operations", "are not 0 to 3"),
        ("fewer-rows", "expected 10 rows, found 9"),
        ("no-system-columns", "answer.schema: expected"),
        ("no-file", "left no file of rows"),
        ("no-parquet", "is no Parquet"),
        ("link-as-output", "cannot be opened as a plain file"),
        ("answers-twice", "it answered one request twice"),
        ("never-answers", "ended the conversation without an answer"),
        ("nonsense", "its answer cannot be read"),
        ("huge-answer", "RESOURCE_EXHAUSTED"),
        ("own-fault", "it reports a fault of its own: out of ideas"),
        ("dies", "ended with code 7 in the middle of a request"),
    ],
)
def test_engine_that_lies_is_a_failure_with_what_is_wrong(tmp_path: Path, behaviour: str, stated: str) -> None:
    with opened(tmp_path, behaviour) as session:
        with pytest.raises(EngineFailureError, match=re.escape(stated)):
            session.transform(step(tmp_path))
        assert list((tmp_path / "work").rglob("out/*")) == []
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("behaviour", "limit"),
    [
        ("hangs", "wall_s"),
        ("progress-for-ever", "wall_s"),
        ("floods-the-log", "wall_s"),
        ("forks", "processes"),
        ("fills-the-disk", "output_bytes"),
    ],
)
def test_engine_that_goes_too_far_is_stopped_at_its_limit(tmp_path: Path, behaviour: str, limit: str) -> None:
    with opened(tmp_path, behaviour, replace(LIMITS, wall_s=3.0 if limit == "wall_s" else 60.0)) as session:
        with pytest.raises(LimitExceededError) as caught:
            session.transform(step(tmp_path))
        assert caught.value.limit == limit
        assert list((tmp_path / "work").rglob("out/*")) == []
    assert list((tmp_path / "work").iterdir()) == []


def test_engine_that_does_not_start_says_why(tmp_path: Path) -> None:
    with opened(tmp_path, "ends-at-once") as session, pytest.raises(EngineFailureError) as caught:
        session.start()
    assert "ended with code 3 before it answered at 127.0.0.1:2884" in str(caught.value)
    assert "no licence found" in caught.value.log


def test_cancelled_step_leaves_no_process(tmp_path: Path) -> None:
    with opened(tmp_path, "hangs") as session:
        session.start()
        stopping = threading.Timer(0.5, session.stop)
        stopping.start()
        with pytest.raises(EngineFailureError):
            session.transform(step(tmp_path))
        stopping.join()
    assert processes_with(str(tmp_path)) == []


def test_changed_program_is_not_started(tmp_path: Path) -> None:
    engine = program_engine(tmp_path)
    engine.files.write_text(engine.files.read_text() + "# another")
    changed = AddedEngine(engine.description, engine.files, tmp_path / "cache")
    with pytest.raises(EngineFailureError, match="is not what was added: expected"):
        changed.open(tmp_path, LIMITS)


@pytest.mark.parametrize("form", ["program", "root"])
def test_engine_sees_and_reaches_nothing_of_the_machine(tmp_path: Path, form: str) -> None:
    """ADDED-6: in either form, it has itself, the node's part, its inputs, and a network without a way out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        engine = program_engine(tmp_path, "spies") if form == "program" else root_engine(tmp_path, "spies")
        (tmp_path / "work").mkdir()
        with engine.open(tmp_path / "work", LIMITS) as session, pytest.raises(EngineFailureError) as caught:
            session.transform(step(tmp_path, str(port)))
    assert "of its own: {" in str(caught.value), caught.value
    seen = json.loads(str(caught.value).partition("of its own: ")[2])
    theirs = {"usr", "lib64", "lib"} if form == "program" else {"app", "usr", "lib"}
    ours = {"dev", "etc", "exchange", "opt", "proc", "runtime", "scratch", "tmp"}
    assert set(seen["top"]) <= ours | theirs
    assert seen["writable"] == ["/opt/engine/out", "/scratch", "/tmp"]
    assert (seen["reached"], seen["interfaces"], seen["user"]) == ([], ["lo"], 65534)
    assert seen["processes"] <= 4  # bubblewrap's two, our program, the engine
    assert set(seen["environment"]) <= {"HOME", "LANG", "LD_LIBRARY_PATH", "OWN", "PATH", "TMPDIR", "TZ", "LC_CTYPE"}


def root_engine(folder: Path, behaviour: str) -> AddedEngine:
    """An engine of an image; its Python is that of the node's part, since it has none itself."""
    loader, *options = RootRuntime.launcher(find_runtime(folder))  # type: ignore[arg-type]
    text = write_engine(
        folder / "engine", behaviour, interpreter=f"#!{loader} /runtime/python/bin/python3"
    ).read_bytes()
    layer = tar_of([program("app/engine", text), Entry("usr/data"), link("lib", "usr")])
    start = {"Entrypoint": ["/app/engine"], "Env": [f"LD_LIBRARY_PATH={options[-1]}", "OWN=1"], "WorkingDir": "/app"}
    engine_files = EngineFolder(HomeFolder(folder / "home"))
    file = write(folder / "image.tar", docker_archive([layer], start))
    engine = engine_files.add("other", file, WantedStart(), now=SYSTEM_TIME, examine=lambda _engine: None).engine
    assert isinstance(engine, AddedEngine)
    return engine


def test_engine_with_a_root_folder_answers(tmp_path: Path) -> None:
    with root_engine(tmp_path, "honest").open(tmp_path, LIMITS) as session:
        assert session.transform(step(tmp_path)).statistics.rows_out == 10


def processes_with(text: str) -> list[str]:
    """Command lines of this machine's processes that name a path."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().decode("utf-8", "replace"))
    return [each for each in found if text in each]


def test_slow_engine_is_heard_to_work_but_not_more_than_once_a_second(tmp_path: Path) -> None:
    with opened(tmp_path, "works-slowly") as session:
        assert isinstance(session, HostSession)
        heard: list[int] = []
        session.on_progress = heard.append
        response = session.transform(step(tmp_path))
        assert [row[1] for row in output_rows(response)] == list(range(10))
    assert heard == sorted(set(heard))
    assert heard[0] == 1
    assert 2 <= len(heard) <= response.statistics.seconds + 1
    assert heard[-1] <= 25


def test_engine_that_is_at_work_can_be_stopped(tmp_path: Path) -> None:
    with opened(tmp_path, "progress-for-ever") as session:
        assert isinstance(session, HostSession)
        session.on_progress = lambda _count: session.stop()
        with pytest.raises(EngineFailureError):
            session.transform(step(tmp_path))
        assert not list((session.folder / "out").iterdir())
