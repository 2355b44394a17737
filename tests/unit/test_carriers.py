import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from odf_engines.records.carriers import TIMESTAMP, carrier_of, from_carrier, slice_type_of, to_carrier
from odf_protocol.errors import UnsupportedError

COLUMNS = [
    pytest.param(pa.array([0, 255, None], pa.uint8()), pa.int16(), id="uint8"),
    pytest.param(pa.array([0, 2**64 - 1, None], pa.uint64()), pa.decimal128(20, 0), id="uint64"),
    pytest.param(pa.array([1, None], pa.int32()).cast(pa.time32("ms")), pa.int32(), id="time32"),
    pytest.param(pa.array([1, None], pa.int64()).cast(pa.time64("us")), pa.int64(), id="time64"),
    pytest.param(pa.array([b"ab", None], pa.binary(2)), pa.binary(), id="fixed-binary"),
    pytest.param(pa.array([Decimal("1.20"), None], pa.decimal128(5, 2)), pa.decimal128(5, 2), id="decimal"),
    pytest.param(pa.array([[1, None], [], None], pa.list_(pa.uint8())), pa.list_(pa.int16()), id="list"),
    pytest.param(
        pa.array([{"x": 1}, None], pa.struct([("x", pa.uint16())])), pa.struct([("x", pa.int32())]), id="struct"
    ),
]


@pytest.mark.parametrize(("column", "carrier"), COLUMNS)
def test_values_come_back_from_their_carrier(column: pa.Array, carrier: pa.DataType) -> None:
    carried = to_carrier(column, column.type)
    assert carried.type == carrier == carrier_of(column.type)
    assert from_carrier(carried, column.type).equals(column)


@pytest.mark.parametrize(("column", "carrier"), COLUMNS)
def test_slices_of_columns_come_back_too(column: pa.Array, carrier: pa.DataType) -> None:
    part = column.slice(1)
    assert from_carrier(to_carrier(part, part.type), part.type).equals(part)


def test_value_that_does_not_fit_is_rejected() -> None:
    with pytest.raises(pa.ArrowInvalid):
        from_carrier(pa.array([-1], pa.int16()), pa.uint8())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Oslo"])
def test_timestamps_become_milliseconds_rounded_to_the_past(unit: str, zone: str | None) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    ticks = [-1, 0, 1, per_second + 1, None]
    column = pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))
    expected = [None if tick is None else tick * 1000 // per_second for tick in ticks]
    assert to_carrier(column, TIMESTAMP).cast(pa.int64()).to_pylist() == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pa.large_string(), pa.string()),
        (pa.binary_view(), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns"), TIMESTAMP),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.large_list(pa.field("element", pa.timestamp("us"))), pa.list_(TIMESTAMP)),
        (pa.decimal256(10, 2), pa.decimal128(10, 2)),
    ],
)
def test_slices_have_plain_types(found: pa.DataType, expected: pa.DataType) -> None:
    assert slice_type_of(found) == expected


@pytest.mark.parametrize(
    "found", [pa.decimal256(50, 2), pa.map_(pa.string(), pa.string()), pa.month_day_nano_interval()]
)
def test_type_that_no_slice_can_hold_is_rejected(found: pa.DataType) -> None:
    with pytest.raises(UnsupportedError):
        slice_type_of(found)


def test_days_stay_days() -> None:
    column = pa.array([dt.date(1969, 12, 31), None])
    assert from_carrier(to_carrier(column, pa.date32()), pa.date32()).equals(column)
