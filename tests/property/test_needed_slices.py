"""A step that is handed only the slices that can count gives what one gives that is handed all.

WINDOW-10 and 11 in ``spec/extensions/event-windows.md``, ASOF-10 and 11 in ``spec/extensions/as-of-joins.md``.

Histories go on in event time, with rows that come late, rows far ahead, retractions and corrections of what is long
ago, and watermarks that stand still and jump. Those of a hostile publisher also take what was never given, or give it
later, take twice, repeat rows and times, begin and end with time, state watermarks at the very times of rows, lower
ones than before, and have keys that are null, or long and alike. Compared are the rows of every step in their order,
what was late, and the watermark; of hostile histories also what one step over all of it gives.
"""

import os
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from odf_protocol.events import SqlQueryStep, TemporalTable, TransformSql
from support.view_histories import (
    APPEND,
    CORRECT_FROM,
    CORRECT_TO,
    RETRACT,
    SCHEMAS,
    Change,
    Row,
    View,
    fold_leniently,
)

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("NEEDED_EXAMPLES", "1"))
HOSTILE = int(os.environ.get("HOSTILE_EXAMPLES", "1"))
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # of the years 1 and 9999
LONG = ["n" * 64, "n" * 65, "n" * 70 + "a", "n" * 70 + "b", "", None]
HOUR = 3_600_000
START = 1_600_000_000_000 // HOUR * HOUR
BLOCKS = 10
AHEAD = 60  # hours
Blocks = list[tuple[Sequence[Change], int | None]]

NEAR = "o.k = p.k AND p.event_time BETWEEN o.event_time - INTERVAL 2 HOURS AND o.event_time + INTERVAL {later} HOURS"
CUT = "SELECT window.end AS event_time, k, count(*) AS n FROM ({below}) t GROUP BY window(event_time, {size}), k"
QUERIES = {
    "hopping": CUT.format(
        below="SELECT event_time, k FROM orders EXCEPT SELECT event_time, k FROM people", size="'3 hours', '1 hour'"
    ),
    "joined": CUT.format(
        below=f"SELECT o.event_time, p.k FROM orders o LEFT JOIN people p ON {NEAR.format(later=1)}", size="'2 hours'"
    ),
    "sessions": """
        SELECT session_window.end AS event_time, k, count(*) AS n, sum(a) AS a FROM orders
        GROUP BY session_window(event_time, '90 minutes'), k
    """,
    "as-of": """
        SELECT o.event_time, o.k, o.a, p.r FROM orders o
        LEFT JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k
    """,
    "as-of in windows": CUT.format(
        below="""
            SELECT o.event_time, concat(p.r, p.event_time) AS k FROM orders o
            LEFT JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k
        """,
        size="'2 hours'",
    ),
    "as-of in sessions": """
        SELECT session_window.end AS event_time, k, max_by(r, event_time) AS r, count(DISTINCT r) AS n FROM (
            SELECT o.event_time, o.k, concat(p.r, p.event_time) AS r FROM orders o
            LEFT JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k
        ) t GROUP BY session_window(event_time, '90 minutes'), k
    """,
}

OF_HOSTILE = {
    "as-of in sessions": """
        SELECT session_window.end AS event_time, s, max_by(k, event_time) AS k, count(*) AS n FROM (
            SELECT o.event_time, o.s, concat(p.k, p.event_time) AS k FROM orders o
            LEFT JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.s <=> p.r
        ) t GROUP BY session_window(event_time, '90 minutes'), s
    """,
    "anti-joined": CUT.format(
        below=f"SELECT o.event_time, o.k FROM orders o LEFT ANTI JOIN people p ON {NEAR.format(later=1)}",
        size="'2 hours'",
    ),
}


def random_row(random: Random, name: str, hour: int) -> Row:
    time = START + HOUR * hour + random.randrange(4) * HOUR // 4
    key = random.choice([1, 2, 3])
    return (time, key, random.choice(["north", "south"])) if name == "people" else (time, key, "x", random.randrange(9))


def random_blocks(random: Random, name: str) -> Blocks:
    """Some rows an hour; some come early or late, or change one of long ago; most blocks state a watermark."""
    live: list[Row] = []
    blocks: Blocks = []
    for hour in range(BLOCKS):
        changes = []
        for _ in range(random.randrange(4)):
            live.append(random_row(random, name, hour))
            changes.append(Change(APPEND, live[-1]))
        kind = random.randrange(8)
        if kind == 0:
            live.append(random_row(random, name, random.choice([0, max(0, hour - 3), AHEAD])))
            changes.append(Change(APPEND, live[-1]))
        elif kind == 1 and live:
            changes.append(Change(RETRACT, live.pop(random.randrange(len(live)))))
        elif kind == 2 and live:
            position = random.randrange(len(live))
            corrected = (live[position][0], *random_row(random, name, hour)[1:])
            changes += [Change(CORRECT_FROM, live[position]), Change(CORRECT_TO, corrected)]
            live[position] = corrected
        mark = START + HOUR * random.choice([hour - 2, hour, hour + 1])
        blocks.append((changes, random.choice([None, mark, mark, mark])))
    return blocks


def hostile_row(random: Random, name: str, hour: int) -> Row:
    time = START + HOUR * hour + random.choice([0, 0, 0, 1, -1, HOUR // 2, HOUR // 4])
    time = random.choice([FIRST_MS, LAST_MS, 0]) if random.randrange(15) == 0 else time
    key, text = random.choice([None, 1, 2]), random.choice(LONG)
    return (time, key, text) if name == "people" else (time, key, text, random.choice([None, 0, 1, 5]))


def hostile_blocks(random: Random, name: str) -> Blocks:
    """Rows that are given and taken in any order, whether they are there or not."""
    seen: list[Row] = []
    blocks: Blocks = []
    for hour in range(BLOCKS):
        changes = []
        for _ in range(random.randrange(5)):
            if not seen or random.randrange(10) < 6:
                seen.append(hostile_row(random, name, random.choice([hour, hour, hour + 1, max(0, hour - 2)])))
                changes.append(Change(random.choice([APPEND, APPEND, CORRECT_TO, RETRACT]), seen[-1]))
            else:
                changes.append(Change(random.choice([APPEND, RETRACT, CORRECT_FROM]), random.choice(seen)))
        mark = START + HOUR * random.choice([hour - 3, hour - 1, hour, hour + 1]) + random.choice([0, 0, 1, -1])
        blocks.append((changes, random.choice([None, mark, mark, mark])))
    return blocks


@pytest.mark.parametrize("seed", range(HOSTILE))
@pytest.mark.parametrize("name", OF_HOSTILE)
def test_history_of_a_hostile_publisher_gives_the_same_in_bounded_steps_in_whole_ones_and_at_once(
    spark_session, tmp_path, name, seed
):
    random = Random(f"hostile {name} {seed}")
    tables = (TemporalTable(name="people", primary_key=("r",)),) if "as-of" in name else None
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=OF_HOSTILE[name]),), temporal_tables=tables)
    given = {each: hostile_blocks(random, each) for each in SCHEMAS}
    chosen, whole, once = (View.over(spark_session, transform, tmp_path / each, SCHEMAS) for each in "abc")
    for each in (chosen, whole, once):
        each.folder.mkdir()
    whole.takes_all = True
    block = 0
    while block < BLOCKS:
        size = random.choice([1, 2, 3])
        gained = {each: blocks[block : block + size] for each, blocks in given.items()}
        late = [view.blocks(gained).statistics.late_rows for view in (chosen, whole)]
        reported = f"seed {seed}, block {block}: {OF_HOSTILE[name]}"
        assert (late[0], chosen.changes, chosen.watermark) == (late[1], whole.changes, whole.watermark), reported
        block += size
    once.blocks(given)
    assert fold_leniently(once.changes) == fold_leniently(chosen.changes)
    assert once.watermark == chosen.watermark
    assert chosen.changes


@pytest.mark.parametrize("seed", range(EXAMPLES))
@pytest.mark.parametrize("name", QUERIES)
def test_slices_that_cannot_count_change_nothing_where_they_are_left_out(spark_session, tmp_path, name, seed):
    random = Random(f"{name} {seed}")
    tables = (TemporalTable(name="people", primary_key=("k",)),) if "as-of" in name else None
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=QUERIES[name]),), temporal_tables=tables)
    schemas = {each: SCHEMAS[each] for each in SCHEMAS if each in QUERIES[name]}
    given = {each: random_blocks(random, each) for each in schemas}
    views = []
    for each in ("chosen", "all"):
        (tmp_path / each).mkdir()
        views.append(View.over(spark_session, transform, tmp_path / each, schemas))
    chosen, whole = views
    whole.takes_all = True
    for block, end in pairwise((0, 2, 4, *range(6, BLOCKS + 1))):
        gained = {each: blocks[block:end] for each, blocks in given.items()}
        late = [view.blocks(gained).statistics.late_rows for view in views]
        reported = f"seed {seed}, block {block}: {QUERIES[name]}"
        assert late[0] == late[1], reported
        assert chosen.changes == whole.changes, reported
        assert chosen.watermark == whole.watermark, reported
    assert whole.changes
    assert chosen.handed_over < whole.handed_over


def test_row_that_was_taken_is_not_computed_where_what_takes_it_is_left_out(spark_session, tmp_path):
    """Its slice is handed over for the sake of another row, the slice that takes it is not (WINDOW-11)."""
    query = """
        SELECT session_window.end AS event_time, k, sum(10 / a) AS n FROM orders
        GROUP BY session_window(event_time, '1 hour'), k
    """
    view = View.over(spark_session, query, tmp_path, {"orders": SCHEMAS["orders"]})

    def row(hour: float, key: int, a: int) -> Row:
        return START + round(HOUR * hour), key, "x", a

    bad = row(1, 1, 0)
    view.step({"orders": [Change(APPEND, bad), Change(APPEND, row(9, 2, 5))]})
    view.step({"orders": [Change(RETRACT, bad)]}, {"orders": START + 5 * HOUR})
    assert view.changes == []
    view.handed_over = 0
    view.step({"orders": [Change(APPEND, row(9.5, 2, 10))]}, {"orders": START + 20 * HOUR})
    assert [each.row[1:] for each in view.changes] == [(2, 3.0)]
    assert view.handed_over == 1
