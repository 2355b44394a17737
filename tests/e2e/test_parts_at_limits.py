"""A step that reaches a limit says at which part of it: each limit, on a real engine (ENGINE-16)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest

from odf_engines.contract import Limits, TransformInput
from odf_engines.errors import LimitExceededError
from odf_engines.host.session import HostSession
from odf_engines.sandbox.resources import LastingExcess
from odf_engines.validation.running_name import read_running
from odf_protocol.events import TransformSql
from support.transforms import orders_input, output_rows, transform_request, transform_sql, write_orders

pytestmark = pytest.mark.spark

ROWS = [(number, 0, 0, number, "x", 1.0) for number in range(50)]
# Minutes of work for a row or a pair of rows, and no memory.
SLOW = "reduce(sequence(1, 3000000), 0L, (sum, each) -> sum + length(sha2(string(sum + each + {}), 512)))"
GROUPING = transform_sql(
    ("paired", "SELECT a.event_time, a.id FROM orders a JOIN orders b ON a.id = b.id"),
    (
        "summed",
        f"SELECT max(event_time) AS event_time, id % 2 AS odd, max({SLOW.format('id')}) AS n FROM paired GROUP BY 2",
    ),
    "SELECT event_time, odd, n FROM summed",
)
JOINING = transform_sql(
    ("paired", f"SELECT a.event_time, a.id FROM orders a JOIN orders b ON {SLOW.format('a.id + b.id')} > 0"),
    "SELECT max(event_time) AS event_time, count(*) AS n FROM paired",
)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> TransformInput:
    return orders_input([write_orders(tmp_path_factory.mktemp("orders") / "0.parquet", ROWS)], (0, len(ROWS) - 1))


@pytest.fixture(scope="module")
def session(spark_engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostSession]:
    with spark_engine.open(tmp_path_factory.mktemp("work"), Limits()) as opened:
        yield opened


def caught_at_limit(
    session: HostSession, transform: TransformSql, orders: TransformInput, **limits
) -> LimitExceededError:
    with pytest.raises(LimitExceededError) as caught:
        session.transform(transform_request(transform, orders, limits=Limits(**limits)))
    # Nothing of the step is left.
    assert [each for each in (session.folder / "out").iterdir() if each.name.isdecimal()] == []
    return caught.value


def test_too_many_rows_are_told_as_written(session, orders) -> None:
    every = transform_sql("SELECT event_time, id FROM orders")
    reached = caught_at_limit(session, every, orders, output_rows=10)
    assert (reached.limit, reached.where) == ("output_rows", "writing its rows")
    assert len(output_rows(session.transform(transform_request(every, orders)))) == len(ROWS)


def test_time_that_is_up_is_told_with_the_part(session, orders) -> None:
    reported = []
    for wall_s in (4.0, 16.0, 64.0, 256.0):  # a busy machine takes its time to come to the join
        reached = caught_at_limit(session, JOINING, orders, wall_s=wall_s)
        assert (reached.limit, reached.allowed) == ("wall_s", wall_s)
        reported.append(reached.where)
        if reached.where != "reading its inputs":
            break
    assert reported[-1] == "a join (as in paired)"


@pytest.mark.parametrize(
    ("limit", "transform", "reported", "where"),
    [
        ("memory_bytes", GROUPING, "aggregate 1", "a grouping of rows (as in summed)"),
        ("output_bytes", JOINING, "join 0", "a join (as in paired)"),
    ],
)
def test_limit_that_is_watched_is_told_with_the_part(session, orders, limit, transform, reported, where) -> None:
    session.start()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(session.transform, transform_request(transform, orders))
        while not any(read_running(folder) == reported for folder in (session.folder / "out").iterdir()):
            assert not wait([asked], timeout=0.05).done
        # From here on the limit is less than what is used; the next process has the session's own.
        process = session._process
        process._limits = replace(process._limits, **{limit: 1})
        process._memory = LastingExcess(process._limits.memory_bytes)
        with pytest.raises(LimitExceededError) as caught:
            asked.result()
    assert (caught.value.limit, caught.value.where) == (limit, where)
