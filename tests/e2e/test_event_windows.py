"""Windows in event time in a real Spark: each closes once, by a watermark, over what was there in time.

That it is the same however inputs are cut is in ``tests/property/test_event_windows.py`` and ``test_slicing.py``.
"""

import pytest

from odf_engines.contract import QueryTable, TransformClass
from odf_protocol.vocabulary import Vocabulary
from support.transforms import ORDERS, transform_sql
from support.view_histories import SCHEMAS, Change, View

pytestmark = pytest.mark.spark

DAY = 86_400_000
START = 1_600_000_000_000 // DAY * DAY
APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)

DAILY = "SELECT window.start AS event_time, k, sum(a) AS a FROM orders GROUP BY window(event_time, '1 day'), k"
HOPPING = """
    SELECT window.end AS event_time, count(*) AS n FROM orders WHERE a > 0
    GROUP BY window(event_time, '2 days', '1 day')
"""


def order(day: float, k: int, a: int, op: int = APPEND) -> Change:
    return Change(op, (START + round(day * DAY), k, None, a))


def run(session, folder, query, steps):
    """Run steps of (rows, watermark day); return the rows of each."""
    view = View.over(session, query, folder, {"orders": SCHEMAS["orders"]})
    given = []
    for rows, watermark in steps:
        before = len(view.changes)
        view.step({"orders": rows}, {"orders": None if watermark is None else START + round(watermark * DAY)})
        given.append([((row[0] - START) / DAY, *row[1:]) for row in (each.row for each in view.changes[before:])])
    assert {each.op for each in view.changes} <= {APPEND}
    return given


def test_window_closes_once_at_a_watermark_at_its_end(spark_session, tmp_path):
    given = run(
        spark_session,
        tmp_path,
        DAILY,
        [
            ([order(0.2, 1, 5), order(0.4, 1, 6), order(1.1, 2, 7)], 0.9),
            ([order(0.99, 1, 100)], 1),  # older than its own watermark, and in time
            ([order(0.5, 1, 1000), order(1.5, 2, 1)], None),  # the first is late
            ([], 2),
            ([], 3),
        ],
    )
    assert given == [[], [(0.0, 1, 111)], [], [(1.0, 2, 8)], []]


def test_changes_in_time_are_applied_and_those_too_late_are_counted(spark_session, tmp_path):
    view = View.over(spark_session, DAILY, tmp_path, {"orders": SCHEMAS["orders"]})
    view.step({"orders": [order(0.2, 1, 5), order(0.3, 1, 6)]}, {"orders": None})
    view.step({"orders": [order(0.2, 1, 5, RETRACT), order(0.3, 1, 6, CORRECT_FROM), order(0.3, 1, 9, CORRECT_TO)]})
    response = view.step({}, {"orders": START + DAY})
    assert [each.row for each in view.changes] == [(START, 1, 9)]
    assert (response.statistics.late_rows, response.watermark.unix_ms) == (0, START)
    response = view.step({"orders": [order(0.3, 1, 9, RETRACT), order(1.5, 1, 1)]}, {"orders": START + 2 * DAY})
    assert [each.row for each in view.changes[1:]] == [(START + DAY, 1, 1)]
    assert (response.statistics.late_rows, response.watermark.unix_ms) == (1, START + DAY)


def test_hopping_windows_count_a_row_in_each_that_is_open(spark_session, tmp_path):
    given = run(
        spark_session,
        tmp_path,
        HOPPING,
        [
            ([order(0.5, 1, 1), order(1.5, 1, 1), order(1.6, 1, -1)], 1),
            ([order(0.5, 1, 1)], 2),  # too late for the window that ended at 1, in time for the one that ends at 2
            ([], 3),
        ],
    )
    assert given == [[(1.0, 1)], [(2.0, 3)], [(3.0, 1)]]


BOTH = "SELECT event_time, k FROM orders UNION ALL SELECT event_time, k FROM people"
DAILY_OF_BOTH = f"SELECT window.end AS event_time, count(*) AS n FROM ({BOTH}) GROUP BY window(event_time, '1 day')"


def person(day: float, k: int, r: str = "north") -> Change:
    return Change(APPEND, (START + round(day * DAY), k, r))


def test_window_over_several_inputs_is_given_when_the_last_of_them_closes_it_window_9(spark_session, tmp_path):
    view = View.over(spark_session, DAILY_OF_BOTH, tmp_path, SCHEMAS)
    view.step({"orders": [order(0.5, 1, 1), order(1.5, 1, 1)], "people": [person(0.2, 1)]}, {"orders": START + 3 * DAY})
    assert (view.changes, view.watermark) == ([], None)  # an input that has stated none holds all
    late = view.step({"orders": [order(0.6, 1, 1)], "people": [person(1.1, 1)]}, {"people": START + DAY})
    assert [each.row for each in view.changes] == [(START + DAY, 2)]
    assert (late.statistics.late_rows, late.watermark.unix_ms) == (1, START + DAY)
    # Closed for the orders by an earlier step, whose rows of then still count, and the late one does not.
    view.step({}, {"people": START + 2 * DAY})
    assert [each.row for each in view.changes[1:]] == [(START + 2 * DAY, 2)]


def test_window_over_a_join_waits_as_long_as_partners_can_come_window_9(spark_session, tmp_path):
    query = """
        SELECT window.end AS event_time, count(r) AS n FROM orders o LEFT JOIN people p
        ON o.k = p.k AND p.event_time - INTERVAL 12 HOURS <= o.event_time GROUP BY window(o.event_time, '1 day')
    """
    view = View.over(spark_session, query, tmp_path, SCHEMAS)
    view.step({"orders": [order(0.9, 1, 1)]}, {"orders": START + 2 * DAY, "people": START + DAY})
    assert view.changes == []
    view.step({"people": [person(1.3, 1)]}, {"people": START + DAY + DAY // 2 - 1})
    assert view.changes == []
    response = view.step({}, {"people": START + DAY + DAY // 2})
    assert [each.row for each in view.changes] == [(START + DAY, 1)]
    assert response.watermark.unix_ms == START + DAY
    response = view.step({"people": [person(0.1, 1), person(1.6, 1)]}, {"people": START + 9 * DAY})
    assert (len(view.changes), response.statistics.late_rows) == (1, 1)


def test_class_of_windows_is_final(spark_session):
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)
    query = "SELECT window.end AS event_time, count(*) AS n FROM orders GROUP BY window(event_time, '1 hour')"
    assert spark_session.check(transform_sql(query), [table]).transform_class is TransformClass.FINAL


def test_session_closes_once_and_rows_too_late_for_it_are_counted(spark_session, tmp_path):
    query = """
        SELECT session_window.end AS event_time, k, sum(a) AS a FROM orders
        GROUP BY session_window(event_time, '12 hours'), k
    """
    view = View.over(spark_session, query, tmp_path, {"orders": SCHEMAS["orders"]})
    view.step({"orders": [order(0.2, 1, 5), order(0.5, 1, 6), order(0.1, 2, 7)]}, {"orders": START + DAY // 2})
    assert view.changes == []
    view.step({"orders": [order(0.9, 1, 10), order(0.95, 3, 1), order(0.95, 3, 1, RETRACT)]}, {"orders": START + DAY})
    assert [((each.row[0] - START) / DAY, *each.row[1:]) for each in view.changes] == [(0.6, 2, 7)]
    response = view.step({"orders": [order(0.2, 2, 1000), order(0.9, 1, 10, RETRACT)]}, {"orders": START + 2 * DAY})
    assert [((each.row[0] - START) / DAY, *each.row[1:]) for each in view.changes[1:]] == [(1.4, 1, 21)]
    assert (response.statistics.late_rows, response.watermark.unix_ms) == (2, START + 2 * DAY)


SESSIONS_BY_END = """
    SELECT max(event_time) AS event_time, k, count(*) AS n FROM orders
    GROUP BY session_window(event_time + INTERVAL 1 HOUR, '12 hours'), k
    HAVING session_window.end <= TIMESTAMP_MILLIS({end})
"""


def test_condition_on_the_end_of_a_session_is_about_the_whole_session(spark_session, tmp_path):
    """A row by itself would end before the time that is asked for; its session does not."""
    view = View.over(spark_session, SESSIONS_BY_END.format(end=START + DAY), tmp_path, {"orders": SCHEMAS["orders"]})
    view.step({"orders": [order(0.1, 1, 1), order(0.4, 1, 1), order(0.7, 1, 1), order(0.2, 2, 1)]})
    assert [each.row for each in view.changes] == [(START + round(0.2 * DAY), 2, 1)]


def test_session_whose_gap_comes_from_the_rows_is_final(spark_session):
    query = """
        SELECT session_window.end AS event_time, count(*) AS n FROM orders
        GROUP BY session_window(event_time, CASE WHEN id > 5 THEN '1 hour' ELSE '2 hours' END)
    """
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)
    assert spark_session.check(transform_sql(query), [table]).transform_class is TransformClass.FINAL


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT max(event_time) AS event_time FROM orders GROUP BY window(event_time, '1 day')", "neither its start"),
        (
            "SELECT session_window.start AS event_time FROM orders GROUP BY session_window(event_time, '1 day')",
            "follows from its end",
        ),
        (
            """
            SELECT window.end AS event_time FROM orders WHERE id > (SELECT max(id) FROM orders)
            GROUP BY window(event_time, '1 day')
            """,
            "a subquery",
        ),
        (
            """
            SELECT window.end AS event_time, count(*) AS n FROM orders GROUP BY window(event_time, '1 day')
            HAVING count(*) > (SELECT max(id) FROM orders)
            """,
            "and no Subquery",
        ),
        (
            """
            SELECT window.end AS event_time FROM orders o JOIN orders p ON o.id = p.id
            GROUP BY window(o.event_time, '1 day')
            """,
            "does not say up to when",
        ),
        (
            """
            SELECT window.end AS event_time FROM orders o JOIN orders p
            ON o.id = p.id AND p.event_time <= o.event_time + INTERVAL 1 MONTH GROUP BY window(o.event_time, '1 day')
            """,
            "does not say up to when",
        ),
        (
            """
            SELECT window.end AS event_time FROM orders o FULL OUTER JOIN orders p ON o.event_time = p.event_time
            GROUP BY window(o.event_time, '1 day')
            """,
            "below it is FULL OUTER JOIN",
        ),
        (
            """
            SELECT window.end AS event_time FROM orders o
            JOIN (SELECT id, max(event_time) AS t FROM orders GROUP BY id) p ON o.id = p.id AND p.t <= o.event_time
            GROUP BY window(o.event_time, '1 day')
            """,
            "does not say up to when",
        ),
        (
            """
            SELECT window.end AS event_time FROM (SELECT *, lead(id) OVER (ORDER BY event_time, id) AS x FROM orders)
            GROUP BY window(event_time, '1 day')
            """,
            "below it is Window",
        ),
    ],
)
def test_window_that_no_watermark_could_close_is_rejected(spark_session, query, reason):
    table = QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)
    grade = spark_session.check(transform_sql(query), [table])
    assert reason in (grade.findings[0].reason if grade.findings else grade.obstacle.reason)


@pytest.mark.parametrize("slide", ["'2 days'", "'25 hours', '1 hour'"])
def test_slide_that_is_longer_than_its_window_is_named(spark_session, slide):
    query = f"SELECT window.end AS event_time FROM orders GROUP BY window(event_time, '1 day', {slide})"
    (finding,) = spark_session.check(
        transform_sql(query), [QueryTable(name="orders", vocabulary=Vocabulary(), schema=ORDERS)]
    ).findings
    assert "the slide of window(" in finding.reason
    assert "is longer than its size" in finding.reason
