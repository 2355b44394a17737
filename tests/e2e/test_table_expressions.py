"""Clause GATE-16: tables that a query defines itself (WITH), in a map; every row keeps the place it came from."""

import pytest

from odf_engines.contract import GradeLevel, QueryTable
from odf_engines.errors import InvalidQueryError, NotReproducibleError
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, orders_input, output_rows, transform_request, transform_sql, write_orders

pytestmark = pytest.mark.spark

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)

ROWS = [
    (0, APPEND, 5_000, 1, "new", 10.0),
    (1, APPEND, 5_001, 2, "old", 20.5),
    (2, CORRECT_FROM, 5_000, 1, "new", 10.0),
    (3, CORRECT_TO, 5_000, 1, "paid", 10.0),
    (4, RETRACT, 5_001, 2, "old", 20.5),
]
EXPECTED = [(op, order, status) for _, op, _, order, status, _ in ROWS]

QUERIES = {
    "one-over-another": (
        "WITH a AS (SELECT * FROM orders), b AS (SELECT event_time, id, status FROM a) SELECT * FROM b"
    ),
    "three": (
        "WITH a AS (SELECT * FROM orders), b AS (SELECT * FROM a WHERE id > 0), c AS (SELECT * FROM b)"
        " SELECT event_time, id, status FROM c"
    ),
    "inside-another": (
        "WITH b AS (WITH a AS (SELECT * FROM orders) SELECT * FROM a) SELECT event_time, id, status FROM b"
    ),
    "inside-a-subquery": ("SELECT * FROM (WITH a AS (SELECT * FROM orders) SELECT event_time, id, status FROM a) AS s"),
    "names-of-columns": (
        "WITH a (t, n, s) AS (SELECT event_time, id, status FROM orders) SELECT t AS event_time, n, s FROM a"
    ),
    "names-of-columns-of-two": (
        "WITH a (t, n, s) AS (SELECT event_time, id, status FROM orders), b (u, m, r) AS (SELECT * FROM a)"
        " SELECT u AS event_time, m, r FROM b"
    ),
    "alias-of-a-table": "WITH a AS (SELECT * FROM orders) SELECT x.event_time, x.id, x.status FROM a AS x",
    "alias-with-columns": (
        "WITH a AS (SELECT event_time, id, status FROM orders) SELECT t AS event_time, n, s FROM a AS x (t, n, s)"
    ),
    "name-of-the-input": (
        "WITH orders AS (SELECT event_time, id, status FROM orders) SELECT event_time, id, status FROM orders"
    ),
    "name-of-an-outer-one": (
        "WITH a AS (SELECT * FROM orders), b AS (WITH a AS (SELECT event_time, id, status FROM a) SELECT * FROM a)"
        " SELECT * FROM b"
    ),
    "one-that-is-not-used": (
        "WITH a AS (SELECT count(*) AS n FROM orders), b AS (SELECT event_time, id, status FROM orders) SELECT * FROM b"
    ),
    "one-column-twice": (
        "WITH a AS (SELECT event_time, id, id AS n, status FROM orders) SELECT event_time, n, status FROM a"
    ),
    "expressions": (
        "WITH a AS (SELECT event_time, id + 1 AS n, status FROM orders),"
        " b AS (SELECT event_time, n - 1 AS n, status FROM a)"
        " SELECT * FROM b WHERE n > 0"
    ),
}

STEPS = {
    "in-the-first-step": [
        ("one", "WITH a AS (SELECT * FROM orders), b AS (SELECT event_time, id, status FROM a) SELECT * FROM b"),
        "SELECT * FROM one",
    ],
    "in-the-last-step": [
        ("one", "SELECT event_time, id, status FROM orders"),
        "WITH a AS (SELECT * FROM one), b AS (SELECT * FROM a) SELECT * FROM b",
    ],
    "in-every-step-under-the-same-names": [
        ("one", "WITH a AS (SELECT * FROM orders), b AS (SELECT event_time, id, status FROM a) SELECT * FROM b"),
        ("two", "WITH a AS (SELECT * FROM one), b AS (SELECT * FROM a) SELECT * FROM b"),
        "WITH one AS (SELECT * FROM two), two AS (SELECT * FROM one) SELECT * FROM two",
    ],
}


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    return [write_orders(tmp_path_factory.mktemp("orders") / "0.parquet", ROWS)]


def run(session, transform, orders):
    return output_rows(session.transform(transform_request(transform, orders_input(orders, (0, 4)))))


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_query_with_tables_of_its_own_is_a_map(spark_session, orders, query):
    assert run(spark_session, query, orders) == EXPECTED


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_steps_with_tables_of_their_own_are_a_map(spark_session, orders, steps):
    assert run(spark_session, transform_sql(*steps), orders) == EXPECTED


def test_table_that_is_used_twice_is_read_twice(spark_session, orders):
    query = "WITH a AS (SELECT event_time, id FROM orders) SELECT * FROM a UNION ALL SELECT * FROM a"
    assert sorted(run(spark_session, query, orders)) == [(APPEND, 1), (APPEND, 1)]


def test_columns_of_the_log_stay_known_through_several_tables(spark_session, orders):
    query = "WITH a AS (SELECT * FROM orders), b AS (SELECT * FROM a) SELECT event_time, op + 1 AS x FROM b"
    with pytest.raises(NotReproducibleError, match="describes the change"):
        run(spark_session, query, orders)


def test_table_that_reads_itself_is_pinned_and_its_end_is_the_querys_matter(spark_session, orders):
    step = "WITH RECURSIVE a AS (SELECT event_time, 1 AS n FROM orders UNION ALL SELECT event_time, n + 1 FROM a"
    endless, ending = f"{step}) SELECT * FROM a", f"{step} WHERE n < 3) SELECT * FROM a"
    assert sorted(run(spark_session, ending, orders)) == [(APPEND, 1), (APPEND, 2), (APPEND, 3)]
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)
    assert spark_session.check(transform_sql(ending), [table]).level is GradeLevel.PINNED
    with pytest.raises(InvalidQueryError, match="RECURSION_LEVEL_LIMIT_EXCEEDED"):
        run(spark_session, endless, orders)


def test_event_time_that_passes_through_several_tables_has_the_inputs_watermark(spark_session, orders):
    source = orders_input(orders, (0, 4), watermarks_ms=[4_000])
    query = "WITH a AS (SELECT * FROM orders), b AS (SELECT event_time, id FROM a) SELECT * FROM b"
    assert spark_session.transform(transform_request(query, source)).watermark.unix_ms == 4_000
    later = "SELECT event_time + INTERVAL 1 DAY AS event_time FROM orders"
    made = f"WITH a AS ({later}), b AS (SELECT * FROM a) SELECT * FROM b"
    assert spark_session.transform(transform_request(made, source)).watermark is None
