"""Sessions of event time are those of the rows that came in time, each once, however the input is cut (WINDOW-8).

The oracle is a database of another make over these rows, which knows no sessions: it numbers the gaps between rows.
"""

import os
from random import Random

import pytest

from support.view_histories import SCHEMAS, Change, View, expected_rows, fold, fold_leniently, random_changelog

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("SESSION_EXAMPLES", "3"))
DAY = 86_400_000
START = 1_600_000_000_000
Blocks = list[tuple[list[Change], int | None]]

QUERY = """
    SELECT session_window.end AS event_time, session_window.start AS began, k, count(*) AS n, sum(a) AS a
    FROM orders WHERE s IS NULL OR s <> 'z' GROUP BY session_window(event_time, '{gap} hours'), k
    HAVING count(*) > {n} AND (session_window.end > TIMESTAMP '2020-09-16 00:00:00' OR {n} = 0)
"""
NUMBERED = """
    WITH kept AS (SELECT * FROM orders WHERE s IS NULL OR s <> 'z'),
    gaps AS (
        SELECT *, CASE WHEN event_time - lag(event_time) OVER w <= INTERVAL {gap} HOURS THEN 0 ELSE 1 END AS begins
        FROM kept WINDOW w AS (PARTITION BY k ORDER BY event_time)
    ),
    numbered AS (
        SELECT *, sum(begins) OVER (PARTITION BY k ORDER BY event_time ROWS UNBOUNDED PRECEDING) AS nr FROM gaps
    )
    SELECT max(event_time) + INTERVAL {gap} HOURS AS event_time, min(event_time) AS began, k, count(*) AS n, sum(a) AS a
    FROM numbered GROUP BY k, nr
    HAVING count(*) > {n} AND (max(event_time) + INTERVAL {gap} HOURS > TIMESTAMP '2020-09-16 00:00:00' OR {n} = 0)
"""


def random_blocks(random: Random) -> Blocks:
    """The blocks of an input: rows, and often a watermark, which now and then falls."""
    log = random_changelog(random, "orders", random.randrange(5, 40))
    blocks: Blocks = []
    mark = START - DAY
    while log:
        size = random.randrange(1, 8)
        mark += random.randrange(-DAY // 4, DAY)
        blocks.append((log[:size], random.choice([None, mark])))
        log = log[size:]
    return [*blocks, ([], random.choice([None, START + 4 * DAY, START + 9 * DAY]))]


def rows_in_time(blocks: Blocks) -> tuple[list[Change], int, int | None]:
    """The changes that are not older than the watermark known before them, how many are, and the last watermark."""
    kept, late, known = [], 0, None
    for changes, mark in blocks:
        in_time = [each for each in changes if known is None or each.row[0] >= known]
        kept += in_time
        late += len(changes) - len(in_time)
        known = mark if known is None or (mark is not None and mark > known) else known
    return kept, late, known


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_sessions_are_those_of_the_rows_in_time_however_they_are_cut(spark_session, tmp_path, seed):
    random = Random(seed)
    blocks = random_blocks(random)
    words = {"gap": random.choice([23, 24, 48, 60]), "n": random.choice([0, 1])}
    kept, late, known = rows_in_time(blocks)
    # What is taken too late stays; so a row may have been taken that was itself too late to be given.
    left = fold_leniently(kept)
    everything = expected_rows(NUMBERED.format(**words), {"orders": left})
    expected = {row: n for row, n in everything.items() if known is not None and row[0] < known}
    for subset in {3 if seed % 2 else 1, len(blocks)}:
        folder = tmp_path / str(subset)
        folder.mkdir()
        view = View.over(spark_session, QUERY.format(**words), folder, {"orders": SCHEMAS["orders"]})
        counted = 0
        for start in range(0, len(blocks), subset):
            before = view.watermark
            given = len(view.changes)
            counted += view.blocks({"orders": blocks[start : start + subset]}).statistics.late_rows
            assert all(each.row[0] >= before.unix_ms for each in view.changes[given:] if before is not None)
        assert (fold(view.changes), counted) == (expected, late), f"seed {seed}, {subset} blocks a step: {words}"
        assert all(each.op == 0 for each in view.changes)
        assert (None if view.watermark is None else view.watermark.unix_ms) == known
