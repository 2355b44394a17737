"""Windows over several inputs count, of each, what was there when it closed, however the inputs are cut (WINDOW-9).

The oracle is that sentence: for each end of a window the changes of every input up to the block that closed it, folded,
and a database of another make over them.
"""

import os
from collections import Counter
from itertools import zip_longest
from random import Random

import pytest

from support.view_histories import SCHEMAS, Change, Row, View, expected_rows, fold, fold_leniently, random_changelog

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("WINDOW_EXAMPLES", "3"))
HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_600_000_000_000 // DAY * DAY
Blocks = list[tuple[list[Change], int | None]]

NEAR = "o.k = p.k AND p.event_time BETWEEN o.event_time - INTERVAL 1 DAY AND o.event_time + INTERVAL {hours} HOURS"
BELOW = [
    "SELECT event_time, k FROM orders UNION ALL SELECT event_time, k FROM people",
    "SELECT event_time, k FROM orders EXCEPT SELECT event_time, k FROM people",
    f"SELECT o.event_time, o.k FROM orders o JOIN people p ON {NEAR}",
    f"SELECT o.event_time, p.k FROM orders o LEFT JOIN people p ON {NEAR}",
    f"SELECT o.event_time, o.k FROM orders o LEFT ANTI JOIN people p ON {NEAR}",
    f"SELECT event_time, k FROM people UNION ALL SELECT o.event_time, o.k FROM orders o JOIN people p ON {NEAR}",
]
QUERY = "SELECT window.end AS event_time, k, count(*) AS n FROM ({below}) t GROUP BY window(event_time, '1 day'), k"
FOR_DUCKDB = """
    SELECT date_trunc('DAY', event_time) + INTERVAL 1 DAY AS event_time, k, count(*) AS n FROM ({below}) t GROUP BY ALL
"""


def random_blocks(random: Random, name: str) -> Blocks:
    log = random_changelog(random, name, random.randrange(5, 30))
    blocks: Blocks = []
    mark = START - DAY
    while log:
        size = random.randrange(1, 7)
        mark += random.randrange(-DAY // 4, DAY)
        blocks.append((log[:size], random.choice([None, mark])))
        log = log[size:]
    return [*blocks, ([], random.choice([None, START + 4 * DAY, START + 9 * DAY]))]


def closed_at(blocks: Blocks, time: int) -> int | None:
    """How many blocks there were when the first watermark at or after a time was stated."""
    return next((count for count, (_, mark) in enumerate(blocks, 1) if mark is not None and mark >= time), None)


def expected(blocks: dict[str, Blocks], below: str, delays: dict[str, int]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for end in range(START - DAY, START + 10 * DAY, DAY):
        closed = {name: closed_at(each, end + delays[name]) for name, each in blocks.items()}
        if None in closed.values():
            continue
        counted = {
            name: fold_leniently([change for changes, _ in each[: closed[name]] for change in changes])
            for name, each in blocks.items()
        }
        rows = expected_rows(FOR_DUCKDB.format(below=below), counted)
        found.update({row: count for row, count in rows.items() if row[0] == end})
    return found


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_window_counts_what_was_there_when_it_closed_however_inputs_are_cut(spark_session, tmp_path, seed):
    random = Random(seed)
    hours = random.choice([0, 5, 30])
    below = BELOW[seed % len(BELOW)].format(hours=hours)
    blocks = {name: random_blocks(random, name) for name in SCHEMAS}
    delays = {"orders": 0, "people": hours * HOUR if "JOIN" in below else 0}
    wanted = expected(blocks, below, delays)
    late = set()
    for sizes in ((100, 100), (3, 1) if seed % 2 else (1, 2)):
        folder = tmp_path / "-".join(map(str, sizes))
        folder.mkdir()
        view = View.over(spark_session, QUERY.format(below=below), folder, SCHEMAS)
        cuts = [
            [blocks[name][start : start + size] for start in range(0, len(blocks[name]), size)]
            for name, size in zip(SCHEMAS, sizes, strict=True)
        ]
        counted = 0
        for subsets in zip_longest(*cuts, fillvalue=[]):
            before, given = view.watermark, len(view.changes)
            counted += view.blocks(dict(zip(SCHEMAS, subsets, strict=True))).statistics.late_rows
            assert all(before is None or each.row[0] > before.unix_ms for each in view.changes[given:])
        assert fold(view.changes) == wanted, f"seed {seed}, {sizes} blocks a step: {below}"
        assert all(each.op == 0 for each in view.changes)
        late.add(counted)
    assert len(late) == 1
