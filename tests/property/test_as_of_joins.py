"""Joins as of an event time: each probe has the version of its time, however the inputs are cut (ASOF-3 to ASOF-7).

The oracle is the sentence of the specification, one probe after the other: of the changes that came before a watermark
at or after its time, the version given last among the newest of its key.
"""

import os
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from random import Random

import pytest

from odf_protocol.events import SqlQueryStep, TemporalTable, TransformSql
from support.view_histories import (
    SCHEMAS,
    Change,
    Row,
    View,
    expected_rows,
    fold,
    fold_leniently,
    random_changelog,
    random_layer,
)

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("AS_OF_EXAMPLES", "2"))
DAY = 86_400_000
START = 1_600_000_000_000
Blocks = list[tuple[list[Change], int | None]]

ONE_KEY = """
    SELECT o.event_time, o.k, o.s, o.a, p.r FROM orders o
    {join} JOIN people FOR SYSTEM_TIME AS OF o.event_time AS p ON o.k = p.k WHERE o.s IS NULL OR o.s <> 'z'
"""
TWO_KEYS = """
    WITH asked AS (SELECT * FROM people WHERE r IS NULL OR r <> 'south')
    SELECT q.event_time, q.k, q.r, o.a FROM asked AS q
    {join} JOIN orders FOR SYSTEM_TIME AS OF q.event_time AS o ON q.k = o.k AND q.r = o.s
"""


def transform(query: str, table: str, *key: str) -> TransformSql:
    tables = (TemporalTable(name=table, primary_key=key),)
    return TransformSql(engine="spark", queries=(SqlQueryStep(query=query),), temporal_tables=tables)


def random_blocks(random: Random, name: str) -> Blocks:
    """The blocks of an input: rows, and often a watermark."""
    log = random_changelog(random, name, random.randrange(4, 24))
    if name == "people":  # so that keys of two columns are met
        log = [Change(each.op, (*each.row[:2], {"north": "x"}.get(each.row[2], each.row[2]))) for each in log]
    blocks: Blocks = []
    mark = START - DAY
    while log:
        size = random.randrange(1, 6)
        mark += random.choice([0, DAY // 2, DAY, 2 * DAY])
        blocks.append((log[:size], random.choice([None, mark, mark])))
        log = log[size:]
    return [*blocks, ([], random.choice([None, START + 3 * DAY, START + 9 * DAY]))]


def known_before(blocks: Blocks) -> list[tuple[Change, int]]:
    """Each change with the highest watermark stated before its block; -1 where none was."""
    found, known = [], -1
    for changes, mark in blocks:
        found += [(each, known) for each in changes]
        known = max(known, -1 if mark is None else mark)
    return found


def highest(blocks: Blocks) -> int:
    return max((mark for _, mark in blocks if mark is not None), default=-1)


def version_at(table: Blocks, time: int, key: Sequence[object], width: int) -> Row | None:
    """What the specification says is in force."""
    if None in key:
        return None
    counts: Counter[Row] = Counter()
    given_last: dict[Row, int] = {}
    for offset, (change, known) in enumerate(known_before(table)):
        if known < time and tuple(change.row[1 : 1 + width]) == tuple(key) and change.row[0] <= time:
            counts[change.row] += 1 if change.op in (0, 3) else -1
            if change.op in (0, 3):
                given_last[change.row] = offset
    live = [row for row, count in counts.items() if count > 0]
    return max(live, key=lambda row: (row[0], given_last[row]), default=None)


def expected(probes: Blocks, table: Blocks, *, composite: bool, outer: bool) -> Counter[Row]:
    answers: Counter[Row] = Counter()
    changes = fold_leniently([each for rows, _ in probes for each in rows])
    for row in changes.elements():
        if row[0] > highest(table) or row[2] == ("south" if composite else "z"):
            continue
        found = version_at(table, row[0], row[1:3] if composite else row[1:2], 2 if composite else 1)
        if found is not None or outer:
            answers[*row, None if found is None else found[3 if composite else 2]] += 1
    return answers


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_probe_has_the_version_of_its_time_however_inputs_are_cut(spark_session, tmp_path, seed):
    random = Random(seed)
    composite, outer = random.random() < 0.4, random.random() < 0.5
    probe, table = ("people", "orders") if composite else ("orders", "people")
    query = (TWO_KEYS if composite else ONE_KEY).format(join="LEFT" if outer else "")
    declared = transform(query, table, *(("k", "s") if composite else ("k",)))
    blocks = {name: random_blocks(random, name) for name in (probe, table)}
    late = sum(known >= each.row[0] for each, known in known_before(blocks[table]))
    for of_probe, of_table in ((100, 1), (2, 1)) if seed % 2 else ((100, 100), (1, 2)):
        folder = tmp_path / f"{of_probe}-{of_table}"
        folder.mkdir()
        view = View.over(spark_session, declared, folder, SCHEMAS)
        seen: dict[str, Blocks] = {probe: [], table: []}
        counted = 0
        for subsets in zip_longest(_cut(blocks[probe], of_probe), _cut(blocks[table], of_table), fillvalue=[]):
            gained = dict(zip((probe, table), subsets, strict=True))
            for name, more in gained.items():
                seen[name] = [*seen[name], *more]
            before, given = view.watermark, len(view.changes)
            counted += view.blocks(gained).statistics.late_rows
            reported = f"seed {seed}, {of_probe} and {of_table} blocks a step: {query}"
            assert fold(view.changes) == expected(seen[probe], seen[table], composite=composite, outer=outer), reported
            reached = min(highest(seen[probe]), highest(seen[table]))
            assert (-1 if view.watermark is None else view.watermark.unix_ms) == reached
            assert before is None or view.watermark >= before
            assert given == len(view.changes) or reached >= -1
        assert counted == late


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_query_over_answers_is_kept_up_to_date_however_inputs_are_cut(spark_session, tmp_path, seed):
    """Groups, window functions, sets over a join as of a time, and the probes beside it (ASOF-9)."""
    random = Random(seed)
    outer = random.random() < 0.5
    answers = f"SELECT event_time, k, r AS s, a FROM ({ONE_KEY.format(join='LEFT' if outer else '')}) t"
    layer = next(each for each in iter(lambda: random_layer(random, "{below}"), None) if "people" not in each)
    blocks = {name: random_blocks(random, name) for name in SCHEMAS}
    late = sum(known >= each.row[0] for each, known in known_before(blocks["people"]))
    for of_orders, of_people in ((100, 100), (1, 3) if seed % 2 else (2, 1)):
        folder = tmp_path / f"{of_orders}-{of_people}"
        folder.mkdir()
        view = View.over(spark_session, transform(layer.format(below=answers), "people", "k"), folder, SCHEMAS)
        seen: dict[str, Blocks] = {name: [] for name in SCHEMAS}
        counted = 0
        cut = zip_longest(_cut(blocks["orders"], of_orders), _cut(blocks["people"], of_people), fillvalue=[])
        for orders, people in cut:
            seen["orders"] += orders
            seen["people"] += people
            counted += view.blocks({"orders": orders, "people": people}).statistics.late_rows
            reached = min(highest(seen["orders"]), highest(seen["people"]))
            assert view.watermark is None or view.watermark.unix_ms <= reached
            given = expected(seen["orders"], seen["people"], composite=False, outer=outer)
            tables = {"answers": Counter({(*row[:2], row[4], row[3]): n for row, n in given.items()})}
            tables["orders"] = fold_leniently([each for rows, _ in seen["orders"] for each in rows])
            schemas = dict.fromkeys(tables, SCHEMAS["orders"])
            wanted = expected_rows(layer.format(below="SELECT * FROM answers"), tables, schemas)
            assert fold(view.changes) == wanted, f"seed {seed}, {of_orders} and {of_people} blocks a step: {layer}"
        assert counted == late


def _cut(blocks: Blocks, size: int) -> list[Blocks]:
    return [blocks[start : start + size] for start in range(0, len(blocks), size)]
