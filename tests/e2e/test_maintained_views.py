"""Maintained views in a real Spark in a real sandbox: folded, the output is the query over the folded inputs."""

from dataclasses import replace

import pytest

from odf_engines.contract import GradeLevel, QueryTable, TransformClass
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, orders_input, output_rows, transform_request, transform_sql, write_orders

pytestmark = pytest.mark.spark

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)

ROWS = [
    (0, APPEND, 5_000, 1, "new", 10.0),
    (1, APPEND, 5_001, 2, "new", 20.5),
    (2, CORRECT_FROM, 5_000, 1, "new", 10.0),
    (3, CORRECT_TO, 5_000, 1, "paid", 10.0),
    (4, RETRACT, 5_001, 2, "new", 20.5),
    (5, APPEND, 5_002, 3, "paid", 7.0),
    (6, APPEND, 5_003, 3, None, 7.0),
]


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("orders")
    return [write_orders(folder / f"{row[0]}.parquet", [row]) for row in ROWS]


def step(session, query, orders, first, last, **more):
    """One step that reads the rows from ``first`` to ``last``."""
    source = orders_input(orders[first : last + 1], (first, last))
    source = replace(source, prev_offset=first - 1 if first else None, earlier_slices=tuple(orders[:first]))
    return session.transform(transform_request(query, source, **more))


PER_STATUS = "SELECT max(event_time) AS event_time, status, count(*) AS n, sum(id) AS ids FROM orders GROUP BY status"


def test_group_that_changes_is_corrected(spark_session, orders):
    assert output_rows(step(spark_session, PER_STATUS, orders, 0, 1)) == [(APPEND, "new", 2, 3)]
    assert output_rows(step(spark_session, PER_STATUS, orders, 2, 3)) == [
        (CORRECT_FROM, "new", 2, 3),
        (CORRECT_TO, "new", 1, 2),
        (APPEND, "paid", 1, 1),
    ]
    assert output_rows(step(spark_session, PER_STATUS, orders, 4, 6)) == [
        (APPEND, None, 1, 3),
        (RETRACT, "new", 1, 2),
        (CORRECT_FROM, "paid", 1, 1),
        (CORRECT_TO, "paid", 2, 4),
    ]


def test_total_that_a_step_without_rows_gave_is_taken_when_rows_come(spark_session, orders):
    """As after a first step that read a watermark alone: a total has a row over no rows too (VIEW-4)."""
    total = """
        SELECT coalesce(max(event_time), TIMESTAMP '1970-01-01') AS event_time, 'all' AS status, count(*) AS n
        FROM orders
    """
    nothing = spark_session.transform(transform_request(total, orders_input([], None)))
    assert [row[:3] for row in output_rows(nothing)] == [(APPEND, "all", 0)]
    then = step(spark_session, total, orders, 0, 1, next_offset=1)
    assert [row[:3] for row in output_rows(then)] == [(CORRECT_FROM, "all", 0), (CORRECT_TO, "all", 2)]


def test_a_few_rows_that_give_many_change_the_result_as_a_few_do(spark_session, orders):
    """More rows than are compared outside of Spark (VIEW-4, VIEW-6, VIEW-7)."""
    many = """
        SELECT max(event_time) AS event_time, status, n, count(*) AS c
        FROM orders LATERAL VIEW explode(sequence(1, 600)) AS n GROUP BY status, n
    """
    first = output_rows(step(spark_session, many, orders, 0, 1))
    assert first == [(APPEND, "new", n, 2) for n in range(1, 601)]
    then = output_rows(step(spark_session, many, orders, 2, 3))
    assert then == [
        *((op, "new", n, c) for n in range(1, 601) for op, c in ((CORRECT_FROM, 2), (CORRECT_TO, 1))),
        *((APPEND, "paid", n, 1) for n in range(1, 601)),
    ]


def test_class_is_told_before_anything_is_made(spark_session):
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)
    grade = spark_session.check(transform_sql(PER_STATUS), [table])
    assert (grade.level, grade.transform_class) == (GradeLevel.REPRODUCIBLE, TransformClass.MAINTAINED)
    assert grade.schema.names == ["offset", "op", "system_time", "event_time", "status", "n", "ids"]
    grade = spark_session.check(transform_sql("SELECT event_time, id FROM orders"), [table])
    assert grade.transform_class is TransformClass.MAP
