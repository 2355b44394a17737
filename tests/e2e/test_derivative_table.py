"""The table of what a derivative may say, alone and composed: after every step the output is what DuckDB says.

``DERIVATIVE_SUBSETS=7`` cuts the histories into as many steps instead of two. Of those without watermarks the first is
not run: it gave what DuckDB says, and the next computes that again.
"""

import os
from collections.abc import Iterator
from random import Random

import pytest

from support.derivative_table import TABLE, Case
from support.view_histories import (
    APPEND,
    CORRECT_FROM,
    CORRECT_TO,
    RETRACT,
    SCHEMAS,
    Change,
    View,
    expected_rows,
    fold,
    random_changelog,
)

pytestmark = pytest.mark.spark

SUBSETS = int(os.environ.get("DERIVATIVE_SUBSETS", "2"))
HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_600_000_000_000 // DAY * DAY
Block = tuple[list[Change], int | None]


def anyhow(random: Random, name: str) -> list[Block]:
    """Blocks of one change each, that come in any order of event time, without watermarks."""
    return [([each], None) for each in random_changelog(random, name, 14)]


def in_time(random: Random, name: str) -> list[Block]:
    """Blocks of a day each, in which rows are taken and corrected; most state a watermark. Nothing is late."""
    blocks: list[Block] = []
    for start in range(START, START + 4 * DAY, DAY):
        times = random.sample(range(start + HOUR, start + DAY, HOUR), random.randrange(1, 5))
        rows = [_row(random, name, time) for time in times]
        changes = [Change(APPEND, each) for each in rows]
        if name == "orders":  # two of one time
            changes.append(Change(APPEND, _row(random, name, times[0])))
        if len(rows) > 1 and random.random() < 0.5:
            changes.append(Change(RETRACT, rows.pop(0)))
        if random.random() < 0.5:
            corrected = (*rows[-1][:-1], "east" if name == "people" else 5)
            changes += [Change(CORRECT_FROM, rows[-1]), Change(CORRECT_TO, corrected)]
        blocks.append((changes, start + DAY if random.random() < 0.8 else None))
    return blocks


def _row(random: Random, name: str, time: int) -> tuple[object, ...]:
    if name == "people":
        return time, random.choice([1, 2, 3]), random.choice(["north", "south"])
    return time, random.choice([None, 1, 2, 3]), random.choice([None, "x", "y"]), random.choice([None, -3, 0, 1, 7])


def cut(random: Random, blocks: list[Block], subsets: int) -> Iterator[list[Block]]:
    ends = sorted(random.randrange(len(blocks) + 1) for _ in range(subsets - 1))
    for start, end in zip([0, *ends], [*ends, len(blocks)], strict=True):
        yield blocks[start:end]


def check(session, folder, case: Case, subsets: int) -> None:
    random = Random(case.name)
    make = in_time if case.has_watermarks else anyhow
    folder.mkdir()
    view = View.over(session, case.transform, folder, SCHEMAS)
    seen: dict[str, list[Change]] = {name: [] for name in SCHEMAS}
    known = dict.fromkeys(SCHEMAS, 0)
    cuts = {name: [*cut(random, make(random, name), subsets)] for name in SCHEMAS}
    for step in range(subsets):
        gained = {name: cuts[name][step] for name in SCHEMAS}
        for name, blocks in gained.items():
            seen[name] += [each for changes, _ in blocks for each in changes]
            known[name] = max([known[name], *(mark for _, mark in blocks if mark is not None)])
        query_text = case.query_text
        for name, mark in known.items():
            query_text = query_text.replace(f"{{{name}}}", f"make_timestamptz({mark * 1000})")
        wanted = expected_rows(query_text, {name: fold(changes) for name, changes in seen.items()})
        if step == 0 and subsets > 1 and not case.has_watermarks:
            view.begin_after(gained, wanted)
            continue
        assert view.blocks(gained).statistics.late_rows == 0, case.name
        assert fold(view.changes) == wanted, f"{case.name}, step {step} of {subsets}: {case.query}"


@pytest.mark.parametrize("cell", TABLE)
def test_output_is_what_another_database_says(spark_session, tmp_path, cell):
    for number, case in enumerate(TABLE[cell]):
        check(spark_session, tmp_path / str(number), case, SUBSETS)
