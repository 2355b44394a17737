"""Joins as of an event time in a real Spark: what waits, what counts, what is late, and what is rejected (ASOF)."""

import pytest

from odf_engines.contract import QueryTable, TransformClass
from odf_protocol.events import SqlQueryStep, TemporalTable, TransformSql
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary
from support.view_histories import SCHEMAS, Change, View

pytestmark = pytest.mark.spark

DAY = 86_400_000
START = 1_600_000_000_000 // DAY * DAY
APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)
JOINED = """
    SELECT o.event_time, o.a, p.r FROM orders AS o
    LEFT JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k
"""


def as_of(query: str = JOINED, table: str = "people", *key: str) -> TransformSql:
    tables = (TemporalTable(name=table, primary_key=key or ("k",)),)
    return TransformSql(engine="spark", queries=(SqlQueryStep(query=query),), temporal_tables=tables)


def order(day: float, k: int, a: int, op: int = APPEND) -> Change:
    return Change(op, (START + round(day * DAY), k, None, a))


def person(day: float, k: int, r: str, op: int = APPEND) -> Change:
    return Change(op, (START + round(day * DAY), k, r))


def mark(day: float) -> int:
    return START + round(day * DAY)


class Steps:
    """A view, and what each step of it gave: operation, day, amount, region."""

    def __init__(self, session, folder, query=JOINED, start=START):
        self.view = View.over(session, as_of(query), folder, SCHEMAS)
        self.late = 0
        self.start = start

    def step(self, orders=(), people=(), orders_mark=None, people_mark=None):
        before = len(self.view.changes)
        marks = {"orders": orders_mark, "people": people_mark}
        self.late += self.view.step({"orders": orders, "people": people}, marks).statistics.late_rows
        return [(each.op, (each.row[0] - self.start) / DAY, *each.row[1:]) for each in self.view.changes[before:]]


def test_probe_waits_for_the_table_and_not_for_its_own_watermark(spark_session, tmp_path):
    steps = Steps(spark_session, tmp_path)
    assert steps.step([order(1, 1, 10), order(2, 1, 20)], [person(0, 1, "old")], orders_mark=mark(2)) == []
    assert steps.step(people_mark=mark(1)) == [(APPEND, 1, 10, "old")]
    assert steps.view.watermark.unix_ms == mark(1)
    assert steps.step(people=[person(1.5, 1, "new")]) == []
    assert steps.step(people_mark=mark(5)) == [(APPEND, 2, 20, "new")]
    assert steps.view.watermark.unix_ms == mark(2)
    # The table is far ahead: a probe has the version of its own time.
    assert steps.step([order(1.2, 1, 30), order(3, 2, 40)]) == [(APPEND, 1.2, 30, "old"), (APPEND, 3, 40, None)]


def test_version_of_the_same_time_counts_and_the_last_one_given_wins(spark_session, tmp_path):
    steps = Steps(spark_session, tmp_path)
    assert steps.step([order(1, 1, 10)], [person(0, 1, "before")], orders_mark=mark(9)) == []
    assert steps.step(people=[person(1, 1, "z first")]) == []
    assert steps.step(people=[person(1, 1, "a last")], people_mark=mark(1)) == [(APPEND, 1, 10, "a last")]


def test_late_version_is_counted_and_in_force_for_later_times(spark_session, tmp_path):
    steps = Steps(spark_session, tmp_path)
    steps.step(people=[person(0, 1, "old")], people_mark=mark(5))
    assert steps.step([order(1, 1, 10)]) == [(APPEND, 1, 10, "old")]
    assert steps.step(people=[person(0.5, 1, "late")], people_mark=mark(6)) == []
    assert steps.late == 1
    assert steps.step([order(2, 1, 20), order(5, 1, 30), order(5.5, 1, 40)]) == [
        (APPEND, 2, 20, "old"),
        (APPEND, 5, 30, "old"),
        (APPEND, 5.5, 40, "late"),
    ]
    assert steps.step(people=[person(0.5, 1, "late", RETRACT)], people_mark=mark(7)) == []
    assert steps.step([order(6, 1, 50), order(7, 1, 60)]) == [(APPEND, 6, 50, "late"), (APPEND, 7, 60, "old")]
    assert steps.late == 2


def test_probe_taken_back_after_its_answer_takes_the_answer_back(spark_session, tmp_path):
    steps = Steps(spark_session, tmp_path)
    steps.step([order(1, 1, 10)], [person(0, 1, "old")], people_mark=mark(2))
    given = steps.step([order(1, 1, 10, CORRECT_FROM), order(1.5, 1, 11, CORRECT_TO), order(8, 1, 80)])
    assert given == [(RETRACT, 1, 10, "old"), (APPEND, 1.5, 11, "old")]
    assert steps.step([order(8, 1, 80, RETRACT)], people_mark=mark(9)) == []


def test_table_without_a_watermark_answers_nobody_and_1970_is_a_time(spark_session, tmp_path):
    steps = Steps(spark_session, tmp_path, start=0)
    probe, version = Change(APPEND, (0, 1, None, 10)), Change(APPEND, (0, 1, "first"))
    assert steps.step([probe], [version], orders_mark=0) == []
    assert steps.view.watermark is None
    assert steps.step(people_mark=0) == [(APPEND, 0, 10, "first")]
    assert steps.view.watermark.unix_ms == 0


def test_class_of_a_join_as_of_a_time_is_final(spark_session):
    tables = [QueryTable(name=name, vocabulary=Vocabulary(), schema=schema) for name, schema in SCHEMAS.items()]
    grade = spark_session.check(as_of(), tables)
    assert (grade.transform_class, grade.schema.names[3:]) == (TransformClass.FINAL, ["event_time", "a", "r"])
    assert any(stage.startswith("joins (left outer)") and "from" in stage for stage in grade.stages)


@pytest.mark.parametrize(
    ("query", "key", "reason"),
    [
        pytest.param("SELECT * FROM people", ("k",), "nothing says which time", id="plain"),
        pytest.param(JOINED.replace("LEFT", "RIGHT"), ("k",), "with nothing", id="right"),
        pytest.param(
            JOINED.replace("OF o.event_time", "OF o.event_time + INTERVAL 1 DAY"),
            ("k",),
            "Invalid time travel",
            id="time",
        ),
        pytest.param(
            JOINED.replace("OF o.event_time", "OF p.event_time"), ("k",), "as of a time of its own", id="its-own"
        ),
        pytest.param(JOINED.replace("p.r", "p.*"), ("k",), "more than one column", id="star"),
        pytest.param(JOINED, ("nothing",), "no column", id="key"),
        pytest.param(JOINED.replace("ON o.k = p.k", "USING (k)"), ("k",), "with ON", id="using"),
        pytest.param(
            f"SELECT * FROM orders WHERE a IN (SELECT a FROM ({JOINED}))", ("k",), "inside an expression", id="subquery"
        ),
        pytest.param("SELECT * FROM orders", ("k",), "does not read this temporal table", id="unread"),
    ],
)
def test_what_is_no_join_as_of_the_probes_time_is_rejected(spark_session, query, key, reason):
    tables = [QueryTable(name=name, vocabulary=Vocabulary(), schema=schema) for name, schema in SCHEMAS.items()]
    grade = spark_session.check(as_of(query, "people", *key), tables)
    assert (grade.level.value, grade.schema) == ("rejected", None)
    assert reason in grade.findings[0].reason


@pytest.mark.parametrize(
    ("query", "key"),
    [
        (f"SELECT max(event_time) AS event_time, r, sum(a) AS a FROM ({JOINED}) GROUP BY r", ("r",)),
        (f"{JOINED} JOIN orders q ON q.k = o.k", None),
        (f"{JOINED} WHERE o.a > (SELECT max(a) FROM orders)", None),
        (JOINED.replace("FROM orders", "FROM (SELECT DISTINCT * FROM orders)"), None),
    ],
)
def test_more_than_lists_and_filters_beside_a_join_as_of_a_time_is_a_maintained_view(spark_session, query, key):
    tables = [QueryTable(name=name, vocabulary=Vocabulary(), schema=schema) for name, schema in SCHEMAS.items()]
    grade = spark_session.check(as_of(query), tables)
    assert (grade.transform_class, grade.key) == (TransformClass.MAINTAINED, key)


def test_group_over_a_join_as_of_a_time_waits_for_answers_and_is_corrected(spark_session, tmp_path):
    query = f"SELECT max(event_time) AS event_time, sum(a) AS a, r FROM ({JOINED}) GROUP BY r"
    steps = Steps(spark_session, tmp_path, query)
    steps.step([order(1, 1, 10), order(2, 1, 20), order(2, 2, 7)], [person(0, 1, "old")], orders_mark=mark(9))
    assert steps.view.changes == []
    assert steps.step(people_mark=mark(1)) == [(APPEND, 1, 10, "old")]
    assert steps.step(people=[person(0.5, 1, "late")], people_mark=mark(2)) == [
        (APPEND, 2, 7, None),
        (APPEND, 2, 20, "late"),
    ]
    assert steps.late == 1
    # The lowest of what the inputs state (VIEW-8): that of the people.
    assert steps.view.watermark == Timestamp.from_unix_ms(mark(2))
    assert steps.step([order(1, 1, 10, RETRACT), order(0.5, 1, 1)]) == [
        (CORRECT_FROM, 1, 10, "old"),
        (CORRECT_TO, 0.5, 1, "old"),
    ]


def test_time_travel_without_a_temporal_table_says_what_to_declare(spark_session):
    tables = [QueryTable(name=name, vocabulary=Vocabulary(), schema=schema) for name, schema in SCHEMAS.items()]
    plain = TransformSql(engine="spark", queries=(SqlQueryStep(query=JOINED),))
    assert "temporalTables" in spark_session.check(plain, tables).findings[0].reason
    grade = spark_session.check(as_of(JOINED, "orders"), tables)
    assert grade.level.value == "rejected"
