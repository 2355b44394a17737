"""Sessions over their life: started on demand, kept warm, ended by limits, started again; queries that attack."""

import hashlib

import pytest

from odf_engines.contract import Limits
from odf_engines.errors import EngineFailureError, InvalidQueryError, LimitExceededError
from odf_engines.host.session import is_worn
from odf_engines.host.step_parts import PARTS
from odf_engines.sandbox.resources import Usage, usage_of
from odf_spark import engine as spark_sessions
from support.transforms import orders_input, output_rows, transform_request, write_orders

pytestmark = pytest.mark.spark

GIB = 1024**3
QUERY = "SELECT event_time, id FROM orders"
ROWS = [(number, 0, 0, number, "x" * 100, 1.0) for number in range(50)]


@pytest.fixture
def orders(tmp_path):
    return orders_input([write_orders(tmp_path / "0.parquet", ROWS)], (0, 49))


def test_session_survives_what_a_query_does_to_it_and_closing_it_leaves_nothing(spark_engine, workspace, orders):
    with spark_engine.open(workspace, Limits(wall_s=600.0, memory_bytes=GIB)) as session:
        # A query whose values outgrow Java's heap ends the process, not the node, and is told as what it is.
        huge = "SELECT event_time, repeat(status, 10000000) AS x FROM orders"
        with pytest.raises(LimitExceededError) as caught:
            session.transform(transform_request(huge, orders))
        assert (caught.value.limit, caught.value.allowed) == ("memory_bytes", GIB)
        assert caught.value.where in PARTS.values()  # of Java that ended, too (ENGINE-16)

        # The next request starts a new process.
        assert len(output_rows(session.transform(transform_request(QUERY, orders)))) == 50

        # A value that no memory could hold is the query's fault, and the process goes on.
        impossible = "SELECT event_time, repeat(status, 2000000000) AS x FROM orders"
        with pytest.raises(InvalidQueryError, match="integer overflow"):
            session.transform(transform_request(impossible, orders))
        used = session._process
        assert len(output_rows(session.transform(transform_request(QUERY, orders)))) == 50
        assert session._process is used

        # So that a long series of requests never reaches the limit of one, a process ends at half of it. The same for
        # memory that Java does not give back.
        fresh = session._fresh_bytes
        assert not is_worn(used, fresh, Limits())
        assert is_worn(used, fresh, Limits(memory_bytes=used.held_bytes // 2))
        used._cpu.add(Usage(0, 0, cpu_s=Limits().cpu_s * 0.6))
        assert len(output_rows(session.transform(transform_request(QUERY, orders)))) == 50
        now = session._process
        assert now is not used
        assert not used.is_running
        assert usage_of(used.process_id).processes == 0

        # A query that a person could wait for for ever: the answer ends at the wall, every process with it.
        assert usage_of(now.process_id).processes > 10
        endless = "SELECT event_time, repeat(sha2(repeat(status, 100000), 512), 100000) AS x FROM orders"
        with pytest.raises(LimitExceededError) as caught:
            session.transform(transform_request(endless, orders, limits=Limits(wall_s=0.05)))
        assert caught.value.limit == "wall_s"
        assert usage_of(now.process_id).processes == 0

        # Closing may be asked for again. That it ends every process is seen of the machines of test_engine_invariance.
        session.close()
    assert list(workspace.iterdir()) == []


def test_large_step_starts_another_process_that_stays_and_gives_the_same_bytes(
    spark_engine, workspace, orders, tmp_path, monkeypatch
):
    """Clause ENGINE-30."""
    few = orders_input([write_orders(tmp_path / "few.parquet", ROWS[:49])], (0, 48))
    groups = "SELECT status, max(event_time) AS event_time, sum(id) AS total FROM orders GROUP BY status"
    monkeypatch.setattr(spark_sessions, "LARGE_STEP_ROWS", 50)
    with spark_engine.open(workspace, Limits(wall_s=600.0, memory_bytes=GIB)) as session:

        def step(rows):
            path = session.transform(transform_request(groups, rows)).data_path
            return hashlib.sha3_256(path.read_bytes()).hexdigest(), session._process

        expected, first = step(few)
        assert step(few)[1] is first
        large, second = step(orders)
        assert second is not first
        assert not first.is_running
        assert step(few) == (expected, second)
        assert step(orders) == (large, second)


def test_inputs_are_shown_read_only_and_unchanged(spark_session, orders):
    path = orders.slices[0]
    before, content = path.stat(), path.read_bytes()
    spark_session.transform(transform_request(QUERY, orders))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_nlink) == (before.st_mtime_ns, before.st_nlink)
    assert path.read_bytes() == content


def test_inputs_and_scratch_of_a_request_are_gone_after_it(spark_session, orders):
    response = spark_session.transform(transform_request(QUERY, orders))
    folder = spark_session.folder
    assert list((folder / "in").iterdir()) == []
    assert [path.name for path in (folder / "out").iterdir() if path.name != ".spark"] == []
    assert response.data_path.is_relative_to(folder / "done")


def test_broken_input_is_told_and_the_session_goes_on(spark_session, tmp_path, orders):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 not parquet PAR1")
    with pytest.raises((EngineFailureError, InvalidQueryError)):
        spark_session.transform(transform_request(QUERY, orders_input([broken], (0, 9))))
    assert len(output_rows(spark_session.transform(transform_request(QUERY, orders)))) == 50


def test_input_that_is_not_there_is_our_mistake(spark_session, tmp_path):
    with pytest.raises(FileNotFoundError):
        spark_session.transform(transform_request(QUERY, orders_input([tmp_path / "none.parquet"], (0, 9))))


def test_warm_session_answers_again_and_again(spark_session, orders):
    process = spark_session._running_process().process_id
    for _ in range(5):
        assert spark_session.transform(transform_request(QUERY, orders)).statistics.rows_out == 50
    assert spark_session._running_process().process_id == process
