"""The same blocks of inputs give the same fold, late rows and watermark, read in 1, 7 or 100 steps, for every class.

Of rows with a column that leaves it to Spark which of them are in force, they are read in two steps.
``SLICING_SUBSETS`` says into how many steps, the last of them block by block; ``1,7,100`` takes minutes.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from odf_protocol.events import DataSchema, SqlQueryStep, TemporalTable, TransformSql
from support.view_histories import SCHEMAS, WITH_FLOATS, Change, Row, View, fold, random_changelog

pytestmark = pytest.mark.spark

SUBSETS = tuple(map(int, os.environ.get("SLICING_SUBSETS", "1,5").split(",")))
BLOCKS = max(SUBSETS)
MARK_EACH = max(BLOCKS // 4, 2)
"""Blocks between watermarks: what comes late to each of them costs a computation of its own (WINDOW-3, ASOF-4)."""
DAY = 86_400_000
START = 1_600_000_000_000
Blocks = list[tuple[Sequence[Change], int | None]]

QUERIES = {
    "map": "SELECT event_time, k, a * 2 AS a FROM orders WHERE a > 0 OR s IS NULL",
    "group": "SELECT max(event_time) AS event_time, k, count(*) AS n, sum(a) AS a FROM orders GROUP BY k",
    "ranking": """
        SELECT event_time, k, s, a FROM (
            SELECT *, row_number() OVER (PARTITION BY k ORDER BY event_time, s NULLS FIRST, a NULLS FIRST) AS nr
            FROM orders
        ) WHERE nr <= 2
    """,
    "join": """
        SELECT coalesce(o.event_time, p.event_time) AS event_time, o.k, o.a, p.r
        FROM orders o FULL OUTER JOIN people p ON o.k = p.k
    """,
    "windows": """
        SELECT window.end AS event_time, k, count(*) AS n, sum(a) AS a FROM orders
        GROUP BY window(event_time, '2 days', '1 day'), k
    """,
    "sessions": """
        SELECT session_window.end AS event_time, k, count(*) AS n, sum(a) AS a FROM orders
        GROUP BY session_window(event_time, '30 hours'), k
    """,
    "as-of": """
        SELECT o.event_time, o.k, o.a, p.r FROM orders o
        LEFT JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k
    """,
}


def random_blocks(random: Random, name: str) -> Blocks:
    """The blocks of an input: rows or none, and now and then a watermark, which leaves some rows late."""
    log = random_changelog(random, name, 30 + BLOCKS)
    ends = sorted(random.randrange(len(log) + 1) for _ in range(BLOCKS - 2))
    cuts = zip([0, *ends], [*ends, len(log)], strict=True)
    marks = (START + number * 5 * DAY // BLOCKS if number % MARK_EACH == 1 else None for number in range(BLOCKS))
    blocks: Blocks = [(log[begin:end], mark) for (begin, end), mark in zip(cuts, marks, strict=False)]
    return [*blocks, ([], START + 9 * DAY)]


def read_in(
    session: Any, name: str, folder: Any, given: dict[str, Blocks], subsets: int, schemas: dict[str, DataSchema]
) -> tuple[Counter[Row], int, Any]:
    """What remains of the output, how many rows were late, and the watermark, after so many steps."""
    folder.mkdir()
    tables = (TemporalTable(name="people", primary_key=("k",)),) if name == "as-of" else None
    transform = TransformSql(engine="spark", queries=(SqlQueryStep(query=QUERIES[name]),), temporal_tables=tables)
    view = View.over(session, transform, folder, {table: schemas[table] for table in given})
    late = 0
    ends = [BLOCKS * number // subsets for number in range(subsets + 1)]
    for begin, end in pairwise(ends):
        gained = {table: blocks[begin:end] for table, blocks in given.items()}
        late += view.blocks(gained).statistics.late_rows
        if name == "map":  # it reads what is new and nothing else
            view.inputs = {table: replace(each, slices=()) for table, each in view.inputs.items()}
    return fold(view.changes), late, view.watermark


@pytest.mark.parametrize("name", QUERIES)
def test_slicing_changes_nothing(spark_session, tmp_path, name):
    random = Random(name)
    given = {table: random_blocks(random, table) for table in SCHEMAS if table in QUERIES[name]}
    first, *others = (read_in(spark_session, name, tmp_path / str(each), given, each, SCHEMAS) for each in SUBSETS)
    others.append(read_in(spark_session, name, tmp_path / "floats", given, 2, WITH_FLOATS))
    rows, late, _ = first
    assert rows
    assert bool(late) == (name in {"windows", "sessions", "as-of"})
    for each in others:
        assert each == first
