"""Rows that are no current rows: counted as QUERY-3 counts, at every version (ICEBERG-8)."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_iceberg import removals
from odf_iceberg.removals import find_removals
from odf_protocol.changelog_balance import CHANGE
from odf_protocol.errors import UnsupportedError

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)
Slice = list[tuple[int, int]]
"""Values, and operations."""


def changes_of(rows: Slice) -> np.ndarray:  # type: ignore[type-arg]
    # Values share an upper half, as rows of other values may.
    return np.array([(value // 2, value, op) for value, op in rows], CHANGE)


def current_rows(slices: list[Slice]) -> Counter[int]:
    """The oracle: each row as often as it was given and not taken back."""
    count: Counter[int] = Counter()
    for value, op in (row for rows in slices for row in rows):
        count[value] += 1 if op in (APPEND, CORRECT_TO) else -1
    return +count


def shown_rows(slices: list[Slice], version: int) -> Counter[int]:
    found = find_removals(lambda place: changes_of(slices[place]), len(slices))
    shown: Counter[int] = Counter()
    for rows, removed in zip(slices[: version + 1], found, strict=False):
        ended = set(removed.rows[: removed.count_at(version)].tolist())
        assert len(ended) == removed.count_at(version)
        shown.update(value for place, (value, _) in enumerate(rows) if place not in ended)
    return shown


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=6), max_size=6))
def test_each_version_shows_its_current_rows(slices: list[Slice]) -> None:
    for version in range(len(slices)):
        assert shown_rows(slices, version) == current_rows(slices[: version + 1])


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6), min_size=1, max_size=6)
)
def test_what_ended_stays_ended_and_is_the_same_whatever_follows(slices: list[Slice]) -> None:
    found = find_removals(lambda place: changes_of(slices[place]), len(slices))
    for removed in found:
        assert all(before <= after for before, after in pairwise(removed.since.tolist()))
    before = find_removals(lambda place: changes_of(slices[place]), len(slices) - 1)
    for earlier, later in zip(before, found, strict=False):
        assert later.rows[: len(earlier.rows)].tolist() == earlier.rows.tolist()


def test_appends_alone_end_nothing() -> None:
    (found,) = find_removals(lambda _: changes_of([(1, APPEND), (1, APPEND)]), 1)
    assert found.count_at(0) == 0


def test_too_many_rows_that_ended_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removals, "MAX_REMOVED_ROWS", 3)
    slices: list[Slice] = [[(1, APPEND), (2, APPEND)], [(1, RETRACT), (2, RETRACT)]]
    with pytest.raises(UnsupportedError, match="rows that ended"):
        find_removals(lambda place: changes_of(slices[place]), 2)
