"""What takes back a row that is not there is found, whatever the sizes, and nothing else is. Source: ROWS-12."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from odf_protocol import changelog_balance
from odf_protocol.changelog_balance import CHANGE, ChangelogBalance, UnsoundRows, taken_rows

Row = tuple[int, int]


def changes(rows: list[tuple[Row, int]]) -> np.ndarray[Any, Any]:
    made = np.empty(len(rows), CHANGE)
    made["high"] = [high for (high, _), _ in rows]
    made["low"] = [low for (_, low), _ in rows]
    made["op"] = [op for _, op in rows]
    return made


def oracle(blocks: list[list[tuple[Row, int]]]) -> list[tuple[int, int]]:
    """How many rows each block takes back too often, and how many of them nothing ever gave, counted one by one."""
    there: Counter[Row] = Counter()
    given: set[Row] = set()
    found = []
    for block in blocks:
        before = Counter({row: min(there[row], 0) for row in there})
        for row, op in block:
            there[row] += 1 if op in {0, 3} else -1
            given |= {row} if op in {0, 3} else set()
        missing = {row: max(before[row] - count, 0) for row, count in there.items()}
        found.append((sum(missing.values()), sum(count for row, count in missing.items() if row not in given)))
    return found


def judge(blocks: list[list[tuple[Row, int]]]) -> list[UnsoundRows | None]:
    made = [changes(block) for block in blocks]
    balance = ChangelogBalance(np.concatenate([taken_rows(each) for each in made]))
    return [balance.add(each) for each in made]


def random_blocks(random: Random, *, sound: bool) -> list[list[tuple[Row, int]]]:
    there: Counter[Row] = Counter()
    # Few values, so that rows repeat and share either half.
    rows = [(random.randrange(3), random.randrange(3)) for _ in range(6)]
    blocks = []
    for _ in range(random.randrange(1, 5)):
        block = []
        for _ in range(random.randrange(8)):
            row, op = random.choice(rows), random.randrange(4)
            if sound and op in {1, 2} and there[row] <= 0:
                op = 0
            there[row] += 1 if op in {0, 3} else -1
            block.append((row, op))
        random.shuffle(block)  # order inside a block says nothing
        blocks.append(block)
    return blocks


@pytest.mark.parametrize("sound", [True, False])
def test_balance_agrees_with_counting_one_by_one(*, sound: bool) -> None:
    unsound = 0
    for seed in range(1500):
        blocks = random_blocks(Random(seed), sound=sound)

        found = [(0, 0) if each is None else (each.count, each.never_given) for each in judge(blocks)]

        assert found == oracle(blocks), f"seed {seed}"
        unsound += any(count for count, _ in found)
    assert unsound == 0 if sound else unsound > 500


def test_row_that_is_named_is_one_that_takes_back_too_often() -> None:
    a, b, c = (1, 1), (1, 2), (2, 1)

    assert judge([[(a, 0), (b, 0)], [(c, 0), (a, 1), (b, 2), (a, 2), (a, 1)]])[1] == UnsoundRows(3, 2, 0)
    # Sound as a whole: what a block gives may stand behind what it takes.
    assert judge([[(a, 1), (a, 0)], [(b, 2), (b, 3), (b, 0), (b, 1)]]) == [None, None]


def test_what_an_earlier_block_took_too_often_is_not_held_against_later_ones() -> None:
    a = (1, 1)
    first, second, third = judge([[(a, 1)], [(a, 0), (a, 3), (a, 1)], [(a, 2)]])

    assert first == UnsoundRows(0, 1, 1)
    assert (second, third) == (None, UnsoundRows(0, 1, 0))


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 300_000])
def test_one_unsound_row_is_found_among_very_many(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog_balance, "_ROWS_AT_ONCE", 65_536)
    random = np.random.default_rng(size)
    given = np.empty(size, CHANGE)
    given["high"], given["low"] = random.integers(0, 2**63, size), random.integers(0, 2**63, size)
    given["op"] = random.choice([0, 3], size)
    taken = given[random.permutation(size)].copy()
    taken["op"] = random.choice([1, 2], size)
    balance = ChangelogBalance(taken_rows(taken))
    assert (balance.add(given), balance.add(taken)) == (None, None)

    place = int(random.integers(size))
    forged = taken.copy()
    forged["low"][place] ^= 1
    balance = ChangelogBalance(taken_rows(forged))

    assert balance.add(given) is None
    assert balance.add(forged) == UnsoundRows(place, 1, 1)
