"""What changed between two small results, found without Spark: VIEW-4, VIEW-6 and VIEW-7."""

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from odf_spark.changelog import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odf_spark.small_differences import find_changes

Row = tuple[int | None, str | None]
SCHEMA = pa.schema([("v0", pa.int64()), ("v1", pa.string())])


def changes(before: list[Row], after: list[Row], key: list[int] | None) -> list[tuple[int, Row]]:
    rows = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in (*after, *before)], SCHEMA)
    counts = pa.chunked_array([pa.array([1] * len(after) + [-1] * len(before), pa.int32())])
    found, operations = find_changes(rows, counts, key)
    return [(op, tuple(row.values())) for op, row in zip(operations.tolist(), found.to_pylist(), strict=True)]


def test_rows_are_given_and_taken_as_often_as_their_number_changed() -> None:
    before: list[Row] = [(1, "a"), (1, "a"), (2, None), (None, "x")]
    after: list[Row] = [(1, "a"), (None, None), (2, None), (3, "c"), (3, "c")]
    assert changes(before, after, None) == [
        (APPEND, (None, None)), (RETRACT, (None, "x")), (RETRACT, (1, "a")), (APPEND, (3, "c")), (APPEND, (3, "c")),
    ]  # fmt: skip


def test_a_row_taken_and_one_given_under_a_key_are_a_correction() -> None:
    before: list[Row] = [(1, "a"), (2, "b"), (None, "n")]
    after: list[Row] = [(1, "A"), (3, "c"), (None, None)]
    assert changes(before, after, [0]) == [
        (CORRECT_FROM, (None, "n")), (CORRECT_TO, (None, None)), (CORRECT_FROM, (1, "a")), (CORRECT_TO, (1, "A")),
        (RETRACT, (2, "b")), (APPEND, (3, "c")),
    ]  # fmt: skip


def test_the_one_row_of_a_query_without_groups_is_corrected() -> None:
    assert changes([(1, "a")], [(2, "a")], []) == [(CORRECT_FROM, (1, "a")), (CORRECT_TO, (2, "a"))]


@pytest.mark.parametrize("key", [None, [], [0]])
def test_equal_results_change_nothing(key: list[int] | None) -> None:
    assert changes([(1, "a")], [(1, "a")], key) == []
    assert changes([], [], key) == []


def sort_key(change: tuple[int, Row]) -> Any:
    op, row = change
    return [(value is not None, value) for value in row], op


@pytest.mark.parametrize("seed", range(20))
def test_changes_lead_from_one_result_to_the_other_in_one_order(seed: int) -> None:
    random = Random(seed)
    before, after = (
        [(random.choice([None, 1, 2]), random.choice([None, "a", "b"])) for _ in range(random.randrange(12))]
        for _ in range(2)
    )
    found = changes(before, after, None)
    assert found == sorted(found, key=sort_key)
    left, wanted = Counter(before), Counter(after)
    left.update(row for op, row in found if op == APPEND)
    left.subtract(row for op, row in found if op == RETRACT)
    assert left == wanted
    assert len(found) == sum(((wanted - Counter(before)) + (Counter(before) - wanted)).values())
