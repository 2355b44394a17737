"""VIEW-13: steps that compute only the groups that their rows touch give what all groups would have given."""

from random import Random

import pytest

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
    "subtotals": "SELECT max(event_time) AS event_time, k, s, count(*) AS n FROM orders GROUP BY ROLLUP (k, s)",
}


def random_row(random: Random) -> tuple[int, int | None, str | None, int | None]:
    return (
        1_600_000_000_000 + random.randrange(5) * 1000,
        random.choice([None, *range(12)]),
        random.choice([None, "", "x", "y"]),
        random.choice([None, *range(5)]),
    )


@pytest.mark.parametrize("kind", [*GROUPED, *MIXED])
def test_groups_that_rows_of_a_step_touch_are_the_ones_that_change(spark_session, tmp_path, kind):
    """A first step with many slices, and then such as bring, take or move a row or two."""
    random, query = Random(kind), (GROUPED | MIXED)[kind]
    view = View.over(spark_session, query, tmp_path, {"orders": WITH_FLOATS["orders"]})
    standing = [random_row(random) for _ in range(300)]
    seen = [Change(APPEND, row) for row in standing]
    view.blocks({"orders": [(seen[place::16], None) for place in range(16)]})
    for _ in range(4):
        old, moved = (standing.pop(random.randrange(len(standing))) for _ in range(2))
        new, given = random_row(random), random_row(random)
        standing += [new, given]
        changes = [Change(RETRACT, old), Change(CORRECT_FROM, moved), Change(CORRECT_TO, new), Change(APPEND, given)]
        view.step({"orders": changes})
        seen += changes
        assert fold(view.changes) == expected_rows(query, {"orders": fold(seen), "people": fold([])}), kind
