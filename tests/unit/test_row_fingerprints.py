"""Equal rows have equal fingerprints whatever their layout; others have not. Source: ROWS-12."""

import struct
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from odf_protocol.row_fingerprints import RowFingerprints

KEY = bytes(range(32))
LEFT_OUT = ("offset",)


def prints(column: pa.Array, name: str = "v") -> list[tuple[int, int]]:
    found = RowFingerprints(KEY).of(pa.record_batch([column], [name]), LEFT_OUT)
    return [tuple(each) for each in found.tolist()]


def floats(*bits: int) -> pa.Array:
    return pa.array(np.array([struct.unpack("<d", struct.pack("<Q", each))[0] for each in bits]))


DIFFERENT: list[tuple[str, pa.DataType, list[Any]]] = [
    ("integers", pa.int64(), [None, 0, 1, -1, 2**31, 2**32, 2**63 - 1, -(2**63)]),
    ("unsigned", pa.uint64(), [None, 0, 1, 2**63, 2**64 - 1]),
    ("bytes", pa.int8(), [None, 0, 1, -1]),
    ("booleans", pa.bool_(), [None, False, True]),
    ("floats", pa.float64(), [None, 0.0, 1.0, -1.0, float("inf"), float("nan"), 5e-324]),
    ("narrow floats", pa.float32(), [None, 0.0, 1.5, float("nan")]),
    ("texts", pa.string(), [None, "", "a", "a\0", "\0", "ab", "b", "x" * 127, "x" * 128, "x" * 129, "x" * 4000, "é"]),
    ("binary", pa.binary(), [None, b"", b"\0", b"\0\0\0\0", b"\0\0\0\0\0", b"abcd", b"abcde"]),
    ("decimals", pa.decimal128(38, 2), [None, Decimal(0), Decimal("0.01"), Decimal("-0.01"), Decimal(10) ** 30]),
    ("wide decimals", pa.decimal256(60, 2), [None, Decimal(0), Decimal(10) ** 50, -(Decimal(10) ** 50)]),
    ("dates", pa.date32(), [None, date(1970, 1, 1), date(1969, 12, 31)]),
    ("times", pa.timestamp("ms", "UTC"), [None, 0, 1, -1, 2**62]),
    ("times of day", pa.time32("ms"), [None, 0, 1]),
    ("lists", pa.list_(pa.string()), [None, [], [None], [""], ["a"], ["a", "b"], ["b", "a"], ["ab"], [None, None]]),
    ("lists of lists", pa.list_(pa.list_(pa.int64())), [None, [], [[]], [[1, 2]], [[1], [2]], [None, [1]]]),
    ("structs", pa.struct([("a", pa.int64()), ("b", pa.string())]),
     [None, {"a": None, "b": None}, {"a": 1, "b": None}, {"a": 1, "b": "1"}, {"a": None, "b": "1"}]),
    ("maps", pa.map_(pa.string(), pa.int64()), [None, [], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)]]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), [pytest.param(k, v, id=name) for name, k, v in DIFFERENT])
def test_different_values_have_different_fingerprints_and_equal_ones_equal(
    kind: pa.DataType, values: list[Any]
) -> None:
    found = prints(pa.array(values, kind))
    cut = pa.array([values[0], *values, *values], kind).slice(1 + len(values))

    assert len(set(found)) == len(values)
    assert prints(cut) == found
    assert prints(pa.array(values[::-1], kind))[::-1] == found


def test_all_nan_are_one_and_both_zeros_are_one() -> None:
    nan, other, minus_zero = prints(floats(0x7FF8_0000_0000_0000, 0xFFF0_0000_0000_0001, 0x8000_0000_0000_0000))

    assert nan == other == prints(pa.array([float("nan")]))[0]
    assert minus_zero == prints(pa.array([0.0]))[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pa.string(), pa.large_string(), id="large"),
        pytest.param(pa.string(), pa.string_view(), id="view"),
        pytest.param(pa.string(), pa.dictionary(pa.int32(), pa.string()), id="dictionary"),
    ],
)
def test_layout_of_a_text_is_of_no_matter(one: pa.DataType, other: pa.DataType) -> None:
    values = ["a", None, "", "long " * 60]

    assert prints(pa.array(values, one)) == prints(pa.array(values, one).cast(other))


def test_column_that_is_null_counts_as_one_that_is_not_there_yet() -> None:
    wide = pa.record_batch({"v": [1, 2], "added": pa.array([None, 7], pa.int64())})
    fingerprints = RowFingerprints(KEY)
    before, after = fingerprints.of(wide.select(["v"]), LEFT_OUT), fingerprints.of(wide, LEFT_OUT)

    assert before[0] == after[0]
    assert before[1] != after[1]


def test_field_that_was_added_inside_of_a_struct_counts_as_null_before() -> None:
    old = pa.array([{"a": 1}], pa.struct([("a", pa.int64())]))
    new = pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]))

    assert prints(old) == prints(new)


def test_same_value_under_another_name_is_another_row() -> None:
    fingerprints = RowFingerprints(KEY)

    assert prints(pa.array([1]), "a") != prints(pa.array([1]), "b")
    # A struct's field is no column whose name has a dot.
    dotted = fingerprints.of(pa.record_batch({"a.b": [1]}), LEFT_OUT)
    nested = fingerprints.of(pa.record_batch({"a": pa.array([{"b": 1}])}), LEFT_OUT)
    assert dotted.tolist() != nested.tolist()


def test_values_behind_nulls_change_nothing() -> None:
    buffers = pa.array(["secret", "x"]).buffers()
    validity = pa.array([None, 1]).buffers()[0]
    hidden = pa.StringArray.from_buffers(2, buffers[1], buffers[2], validity, 1)

    assert prints(hidden) == prints(pa.array([None, "x"]))


def test_another_key_gives_other_fingerprints() -> None:
    rows = pa.record_batch({"v": [1, 2, 3]})

    one, other = RowFingerprints(KEY).of(rows, ()), RowFingerprints(KEY[::-1]).of(rows, ())

    assert not set(one.tolist()) & set(other.tolist())
    assert np.unique(np.concatenate([one["high"], one["low"], other["high"], other["low"]])).size == 12


def test_many_rows_that_differ_in_one_bit_never_meet() -> None:
    """Differences of one bit anywhere, which a sum that kept its lower half would lose."""
    bits = np.left_shift(np.uint64(1), np.arange(64, dtype=np.uint64)).view(np.int64)
    columns = {f"c{n}": np.repeat(bits, 1) if n == 0 else np.zeros(64, np.int64) for n in range(4)}
    batches = [pa.record_batch({f"c{(n + shift) % 4}": columns[f"c{n}"] for n in range(4)}) for shift in range(4)]

    found = [each for batch in batches for each in RowFingerprints(KEY).of(batch, ()).tolist()]

    assert len(set(found)) == 4 * 64
