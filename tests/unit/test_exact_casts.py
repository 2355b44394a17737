"""Numbers become those of a column where they are the same, or say that they do not fit (ING-3)."""

import decimal
import math

import pyarrow as pa
import pytest

from odf_engines.records.carriers import to_carrier


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()], ids=str)
def test_whole_numbers_become_decimals_with_room_for_them(kind: pa.DataType) -> None:
    found = to_carrier(pa.array([3, None], kind), pa.decimal128(3, 2))

    assert found.to_pylist() == [decimal.Decimal("3.00"), None]


@pytest.mark.parametrize(
    ("column", "target"),
    [
        (pa.array([10]), pa.decimal128(3, 2)),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(38, 30)),
        (pa.array([1.0, 1e300]), pa.float32()),
        (pa.array([-1e39]), pa.float32()),
    ],
    ids=["whole", "most-digits", "large", "small"],
)
def test_number_without_room_does_not_fit(column: pa.Array, target: pa.DataType) -> None:
    with pytest.raises(pa.ArrowInvalid):
        to_carrier(column, target)


def test_what_is_no_number_or_without_end_stays_so() -> None:
    found = to_carrier(pa.array([math.nan, math.inf, -math.inf, None]), pa.float32()).to_pylist()

    assert math.isnan(found[0])
    assert found[1:] == [math.inf, -math.inf, None]
