"""Columns of JSON that declares no schema (ING-3)."""

import pyarrow as pa
import pytest

from odf_engines.ingest.source_schema import guess_columns

LONG, DOUBLE, TEXT = pa.int64(), pa.float64(), pa.string()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], LONG),
        ([1, 2.5], DOUBLE),
        ([2**63], DOUBLE),
        ([True, None], pa.bool_()),
        (["1", "2"], TEXT),
        (["2024-01-01"], TEXT),
        ([None], TEXT),
        ([1, "x"], TEXT),
        ([True, 1], TEXT),
        ([[1], [], [2.5]], pa.list_(pa.field("item", DOUBLE))),
        ([[], []], pa.list_(pa.field("item", TEXT))),
        ([{"a": 1}, {"b": None, "a": 2.5}], pa.struct([("a", DOUBLE), ("b", TEXT)])),
        ([{"a": []}, {"a": [1]}], pa.struct([("a", pa.list_(pa.field("item", LONG)))])),
        ([{}, {}], TEXT),
        ([{"a": 1}, [1]], TEXT),
    ],
)
def test_column_has_the_type_that_holds_all_of_its_values(values: list, expected: pa.DataType) -> None:
    assert guess_columns({"v": value} for value in values) == pa.schema([("v", expected)])


def test_columns_come_in_order_of_their_first_appearance() -> None:
    assert guess_columns([{"b": 1}, {"a": 1, "b": 2}]).names == ["b", "a"]
