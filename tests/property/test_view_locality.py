"""SWITCH-1 and SWITCH-2: what a step gives of a group rests on that group's rows, whatever else is computed with them.

Each query runs over the same changelog in three ways: step by step, where later steps compute touched groups alone; in
one step over all rows; and group by group, each alone. All three have the same rows, to the last bit. Sizes are such
that Spark, as it is installed, would go another way for all groups than for one.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from odf_engines.engine import EngineSession
from support.view_histories import APPEND, SCHEMAS, WITH_FLOATS, Change, Row, View, fold

pytestmark = pytest.mark.spark

TIME = "max(event_time) AS event_time"
GROUPS = 160  # above 128 an aggregation of objects sorts what it has met so far, and merges it last

QUERIES = {
    "lists": f"SELECT {TIME}, k, collect_list(s) AS a, listagg(s, ',') AS b, first(s) AS c FROM orders GROUP BY k",
    "estimates": (
        f"SELECT {TIME}, k, approx_percentile(f, 0.5) AS a, percentile(a, 0.5) AS b, avg(f) AS c, mode(s) AS d, "
        f"histogram_numeric(f, 3) AS e FROM orders GROUP BY k"
    ),
    "firsts": (
        f"SELECT {TIME}, k, first(s) AS a, last(s) AS b, max_by(s, a) AS c, any_value(a) AS d FROM orders GROUP BY k"
    ),
    "moments": (
        f"SELECT {TIME}, k, sum(f) AS a, stddev(f) AS b, corr(f, a) AS c, skewness(f) AS d FROM orders GROUP BY k"
    ),
    "distinct": f"SELECT {TIME}, k, collect_list(DISTINCT a) AS a, sum(f) AS b FROM orders GROUP BY k",
    "distinct twice": (
        f"SELECT {TIME}, k, collect_list(DISTINCT a) AS a, count(DISTINCT s) AS b, first(f) AS c FROM orders GROUP BY k"
    ),
    "groups of groups": (
        f"SELECT {TIME}, k, collect_list(m) AS a, first(n) AS b, sum(m) AS c "
        f"FROM (SELECT {TIME}, k, a, sum(f) AS m, first(s) AS n FROM orders GROUP BY k, a) t GROUP BY k"
    ),
    "ties": "SELECT event_time, k, f, row_number() OVER (PARTITION BY k ORDER BY a % 7) AS n FROM orders",
    "neighbours": (
        "SELECT event_time, k, f, lag(f) OVER (PARTITION BY k ORDER BY s) AS a, "
        "sum(f) OVER (PARTITION BY k ORDER BY s ROWS 2 PRECEDING) AS b FROM orders"
    ),
    "first of ties": (
        "SELECT event_time, k, s, f FROM "
        "(SELECT *, row_number() OVER (PARTITION BY k ORDER BY s) AS n FROM orders) t WHERE n <= 2"
    ),
    "rows told apart, then averaged": (
        "SELECT event_time, k, f, avg(f) OVER (PARTITION BY k) AS a "
        "FROM (SELECT DISTINCT event_time, k, a, f FROM orders)"
    ),
    "the same input twice": (
        "SELECT max(x.event_time) AS event_time, x.k, first(y.s) AS a, sum(y.f) AS b, collect_list(y.a) AS c "
        "FROM orders x JOIN orders y ON x.k = y.k WHERE x.a < 9 GROUP BY x.k"
    ),
    "ties, then groups": (
        f"SELECT {TIME}, k, collect_list(n) AS a, sum(f) AS b FROM "
        f"(SELECT *, row_number() OVER (PARTITION BY k ORDER BY s) AS n FROM orders) t WHERE n % 2 = 0 GROUP BY k"
    ),
}


def random_orders(random: Random, groups: int, number: int) -> list[Change]:
    """Rows of many groups, and of none, that tie in most columns and differ in the float."""
    return [
        Change(
            APPEND,
            (
                1_600_000_000_000 + random.randrange(50),
                random.choice([None, *range(groups)]) if random.random() < 0.9 else None,
                random.choice([None, "x", "y", "z"]),
                random.choice([None, *range(300)]),
                random.choice([0.1, 0.2, 0.3, 1e9, random.random()]),
            ),
        )
        for _ in range(number)
    ]


def run(session: EngineSession, query: str, folder, *steps: Sequence[Change]) -> Counter[Row]:
    folder.mkdir()
    view = View.over(session, query, folder, {"orders": WITH_FLOATS["orders"]})
    view.is_exact = True
    for rows in steps:
        view.step({"orders": rows})
    return fold(view.changes)


def key_of(change: Change) -> object:
    return change.row[1]


@pytest.mark.parametrize("name", QUERIES)
def test_many_steps_one_step_and_each_group_alone_give_the_same_bits_switch_2(spark_session, tmp_path, name):
    random = Random(name)
    first = random_orders(random, GROUPS, 5_000)
    some = {random.randrange(GROUPS) for _ in range(3)}
    second = [each for each in random_orders(random, GROUPS, 4_000) if key_of(each) in some]
    third = [each for each in random_orders(random, GROUPS, 400) if key_of(each) not in some][:8]
    stepwise = run(spark_session, QUERIES[name], tmp_path / "steps", first, second, third)
    assert stepwise == run(spark_session, QUERIES[name], tmp_path / "whole", first + second + third)
    for key in (*some, None):
        rows = [each for each in first + second + third if key_of(each) == key]
        alone = run(spark_session, QUERIES[name], tmp_path / f"alone {key}", rows)
        assert alone <= stepwise, key


def test_rows_of_the_tests_tie_and_reach_more_groups_than_a_map_of_objects_holds() -> None:
    rows = random_orders(Random(1), GROUPS, 5_000)
    assert len({key_of(each) for each in rows}) == GROUPS + 1
    assert len({each.row[:4] for each in rows}) < len(rows)
    assert len(SCHEMAS["orders"].fields) + 1 == len(WITH_FLOATS["orders"].fields)
