"""VIEW-13: steps that look only at rows which meet those they bring give what they would over all rows."""

from math import nan
from random import Random

import pyarrow.parquet as pq
import pytest

from odf_protocol.events import DataField, DataSchema, DataTypeFloat64, DataTypeInt64, DataTypeOption
from odf_protocol.vocabulary import Vocabulary, system_fields
from support.view_histories import (
    APPEND,
    CORRECT_FROM,
    CORRECT_TO,
    RETRACT,
    WITH_FLOATS,
    Change,
    View,
    expected_rows,
    fold,
)

pytestmark = pytest.mark.spark

KEYED = DataSchema(
    fields=(
        *system_fields(Vocabulary()),
        DataField(name="k", type=DataTypeOption(inner=DataTypeFloat64())),
        DataField(name="a", type=DataTypeInt64()),
        DataField(name="x", type=DataTypeFloat64()),
    )
)

GROUPED = {
    "by one column": "SELECT max(event_time) AS event_time, k, count(*) AS n, sum(a) AS a FROM orders GROUP BY k",
    "by a column and an expression": (
        "SELECT max(event_time) AS event_time, s, a % 2 AS odd, count(a) AS n FROM orders WHERE a > 1 GROUP BY s, a % 2"
    ),
    "under other names, with HAVING": (
        "SELECT t AS event_time, c, n FROM (SELECT max(event_time) AS t, b AS c, count(*) AS n FROM "
        "(SELECT event_time, k AS b, a FROM orders) AS o GROUP BY b HAVING count(*) > 1) AS g WHERE n < 9"
    ),
    "distinct": "SELECT DISTINCT event_time, s, k FROM orders",
    "the first two of each group": (
        "SELECT event_time, k, s, a FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY event_time, "
        "a NULLS FIRST, s NULLS FIRST) AS nr FROM orders) AS o WHERE nr <= 2"
    ),
    "groups of groups, by a table of the query": (
        "WITH t AS (SELECT max(event_time) AS event_time, k, s, count(*) AS n FROM orders GROUP BY k, s) "
        "SELECT max(event_time) AS event_time, s, count(*) AS n, sum(n) AS total FROM t GROUP BY s"
    ),
    "joined with a small input": (
        "SELECT max(o.event_time) AS event_time, o.k, p.r, count(*) AS n FROM orders AS o LEFT JOIN people AS p "
        "ON o.a = p.k GROUP BY o.k, p.r"
    ),
    "joined without groups": (
        "SELECT o.event_time, o.k, o.s, o.a, p.r FROM people AS p JOIN orders AS o ON o.a = p.k WHERE EXISTS "
        "(SELECT 1 FROM people AS q WHERE q.k <= o.a)"
    ),
}
MIXED = {
    "by an expression alone": (
        "SELECT max(event_time) AS event_time, k % 3 AS r, count(*) AS n FROM orders GROUP BY k % 3"
    ),
    "with sums over all": (
        "SELECT max(event_time) AS event_time, k, count(*) AS n, sum(count(*)) OVER () AS total FROM orders GROUP BY k"
    ),
    "the first of all": (
        "SELECT max(event_time) AS event_time, k, count(*) AS n FROM orders GROUP BY k ORDER BY n DESC, k LIMIT 3"
    ),
    "beside all": (
        "SELECT max(event_time) AS event_time, k, count(*) AS n, (SELECT count(*) FROM orders) AS total "
        "FROM orders GROUP BY k"
    ),
    "joined with what it groups": (
        "SELECT o.event_time, o.k, o.a, t.n FROM orders AS o JOIN "
        "(SELECT k, count(*) AS n FROM orders GROUP BY k) AS t ON o.a = t.k"
    ),
    "of a table that is used twice": (
        "WITH t AS (SELECT max(event_time) AS event_time, k, count(*) AS n FROM orders GROUP BY k) "
        "SELECT t.event_time, t.k, u.n FROM t JOIN t AS u ON t.k = u.k + 1"
    ),
    "beside rows of the other side": (
        "SELECT coalesce(max(o.event_time), max(p.event_time)) AS event_time, o.k, count(*) AS n FROM orders AS o "
        "RIGHT JOIN people AS p ON o.a = p.k GROUP BY o.k"
    ),
    "windows in other columns than groups": (
        "SELECT max(event_time) AS event_time, k, count(*) AS n FROM (SELECT *, count(*) OVER (PARTITION BY a) AS c "
        "FROM orders) AS o WHERE c > 20 GROUP BY k"
    ),
    "subtotals": "SELECT max(event_time) AS event_time, k, s, count(*) AS n FROM orders GROUP BY ROLLUP (k, s)",
}


def random_row(random: Random) -> tuple[int, int | None, str | None, int | None]:
    return (
        1_600_000_000_000 + random.randrange(5) * 1000,
        random.choice([None, *range(40)]),
        random.choice([None, "", *"abcdefghijkl"]),
        random.choice([None, *range(5)]),
    )


@pytest.mark.parametrize("kind", [*GROUPED, *MIXED])
def test_groups_that_rows_of_a_step_touch_are_the_ones_that_change(spark_session, tmp_path, kind):
    """Behind a first step with many slices come such as bring, take or move a row or two."""
    random, query = Random(kind), (GROUPED | MIXED)[kind]
    view = View.over(spark_session, query, tmp_path, WITH_FLOATS)
    standing = [random_row(random) for _ in range(300)]
    seen = [Change(APPEND, row) for row in standing]
    people = [Change(APPEND, (1_500_000_000_000, key, f"r{key}")) for key in range(4)]
    first = expected_rows(query, {"orders": fold(seen), "people": fold(people[:3])})
    many = [(seen[place::6], None) for place in range(6)]
    view.begin_after({"orders": many, "people": [(people[:3], None)]}, first)
    for number in range(2):
        old, moved = (standing.pop(random.randrange(len(standing))) for _ in range(2))
        new, given = random_row(random), random_row(random)
        standing += [new, given]
        changes = [Change(RETRACT, old), Change(CORRECT_FROM, moved), Change(CORRECT_TO, new), Change(APPEND, given)]
        known = people[:3] if number == 0 else people
        view.step({"orders": changes} | ({"people": people[3:]} if number == 1 else {}))
        seen += changes
        assert fold(view.changes) == expected_rows(query, {"orders": fold(seen), "people": fold(known)}), kind


def test_both_ways_give_the_same_rows_and_operations(spark_session, tmp_path):
    """A query that groups by a column, and one in which the same column stands as an expression, so is not known."""
    random, keys = Random(13), [None, 0.0, -0.0, nan, 1.5, *map(float, range(2, 60))]
    many = random.choices([1.5, *keys], [400, *(2 for _ in keys)], k=600)
    rows = [(1_600_000_000_000 + place, key, place % 3, 0.1 * place) for place, key in enumerate(many)]
    changes = [
        [Change(APPEND, row) for row in rows],
        [Change(APPEND, (1_600_000_001_000, key, 1, 0.7)) for key in (None, -0.0, nan, 100.0)],
        [
            Change(RETRACT, rows[7]),
            Change(APPEND, rows[7]),
            Change(CORRECT_FROM, rows[8]),
            Change(CORRECT_TO, (*rows[8][:1], 59.0, *rows[8][2:])),
            Change(RETRACT, (1600000001000, 100.0, 1, 0.7)),
        ],
        [Change(APPEND, (1_600_000_002_000, 1.5, 2, 0.7)), Change(APPEND, (1_600_000_002_000, 0.0, 2, 0.7))],
        [Change(APPEND, (1_600_000_001_000, 100.0, 1, 0.7)), Change(APPEND, (1_600_000_001_000, 200.0, 1, 0.0))],
        # Spark reads the largest file first, and of two zeros max() takes the one that comes first.
        [Change(APPEND, (1_600_000_001_000, 200.0 + place, 1, -0.0)) for place in range(40)],
    ]
    asked = (
        "SELECT max(event_time) AS event_time, {0} AS g, count(*) AS n, sum(x) AS x, {1} AS y FROM orders GROUP BY {0}"
    )
    given = []
    for name, key in (("cut", "k"), ("whole", "coalesce(k, k)")):
        (tmp_path / name).mkdir()
        view = View.over(spark_session, asked.format(key, "CAST(max(x) AS STRING)"), tmp_path / name, {"orders": KEYED})
        steps = [view.blocks({"orders": [(changes[0][place::4], None) for place in range(4)]})]
        steps += [view.step({"orders": each}) for each in changes[1:]]
        tables = [pq.read_table(each.data_path) if each.data_path else None for each in steps]
        given.append([None if each is None else [repr(row) for row in each.to_pylist()] for each in tables])
    assert given[0] == given[1]
