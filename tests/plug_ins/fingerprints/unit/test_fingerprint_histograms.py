"""Bins of doubles, counts that add up, and what is packed of them."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_fingerprints.distinct import STANDARD_ERROR, estimate, pack_registers, registers_of, unpack_registers
from odf_fingerprints.histograms import EMPTY, MAX_BINS, MAX_BITS, MIN_FLOOR, DayCounts, Histogram, bin_of
from odf_protocol.errors import MalformedError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def histogram_of(values: list[float]) -> Histogram:
    counts: dict[int, int] = {}
    for value in values:
        key = bin_of(value, MAX_BITS, MIN_FLOOR)
        counts[key] = counts.get(key, 0) + 1
    return Histogram(MAX_BITS, MIN_FLOOR, tuple(sorted(counts.items())))


@given(FINITE, st.integers(0, MAX_BITS), st.integers(MIN_FLOOR, 1023))
def test_value_lies_in_its_bin_and_the_bin_is_narrow(value: float, bits: int, floor: int) -> None:
    """FP-6."""
    histogram = Histogram(bits, floor, ((bin_of(value, bits, floor), 1),))
    low, high = histogram.edges(histogram.counts[0][0])
    assert low <= value <= high
    if histogram.counts[0][0] and math.isfinite(high) and math.isfinite(low):
        assert (high - low) <= min(abs(low), abs(high)) * 2.0**-bits


@given(st.lists(FINITE, min_size=1, max_size=200), st.integers(0, 20), st.integers(-40, 40))
def test_coarser_bins_are_what_would_have_been_counted(values: list[float], bits: int, floor: int) -> None:
    """FP-6."""
    counts: dict[int, int] = {}
    for value in values:
        key = bin_of(value, bits, floor)
        counts[key] = counts.get(key, 0) + 1
    assert histogram_of(values).coarsened(bits, floor) == Histogram(bits, floor, tuple(sorted(counts.items())))


@given(st.lists(FINITE, max_size=300))
def test_bounded_histogram_holds_all_values_in_40_bins_and_is_read_as_it_was_packed(values: list[float]) -> None:
    """FP-7."""
    bounded = histogram_of(values).bounded()
    assert len(bounded.counts) <= MAX_BINS
    assert bounded.total == len(values)
    assert Histogram.unpack(bounded.pack()) == (bounded if values else EMPTY)


@given(st.lists(FINITE, min_size=1, max_size=60), st.lists(FINITE, min_size=1, max_size=60))
def test_what_was_added_is_taken_away_again(one: list[float], other: list[float]) -> None:
    """FP-5."""
    first, second = histogram_of(one).bounded(), histogram_of(other).bounded()
    both = first.plus(second)
    assert both == second.plus(first)
    assert both.total == len(one) + len(other)
    assert both.plus(second, -1) == first.coarsened(both.bits, both.floor)


def test_outliers_near_zero_do_not_make_bins_of_the_rest_coarse() -> None:
    """FP-7: a normal distribution reaches zero, by ever smaller powers of two."""
    values = [float(each) for each in np.random.default_rng(7).normal(size=20_000)]
    bounded = histogram_of(values).bounded()
    assert max(count for _, count in bounded.counts) < len(values) * 0.1
    assert bounded.quantile(0.5) == pytest.approx(0, abs=0.1)
    assert bounded.quantile(0.9) == pytest.approx(1.28, abs=0.2)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00",
        b"\x00\x00\x02\x00\x01",
        b"\x00\x00\x80\x00\x00",  # a number that is longer than it need be
        b"\x29\x00\x00\x00",  # 41 bits
        b"\x00\x00" + b"\xff" * 8 + b"\x7f\x00",  # a bin that no double has
        b"\x00\x00\x00" + b"\xff" * 8 + b"\x7f",  # more values than there are
        b"\x00\x00" + b"\x00\x00" * (MAX_BINS + 1),
    ],
)
def test_bytes_that_are_no_histogram_are_rejected(raw: bytes) -> None:
    """FP-9."""
    with pytest.raises(MalformedError):
        Histogram.unpack(raw)


@given(st.binary(max_size=60))
def test_histogram_has_one_spelling(raw: bytes) -> None:
    """FP-9."""
    try:
        found = Histogram.unpack(raw)
    except MalformedError:
        return
    assert found.pack() == raw


@given(st.lists(st.integers(-(2**36), 2**36), max_size=100), st.integers(2, 20))
def test_days_are_counted_and_read_as_they_were_packed(days: list[int], most: int) -> None:
    """FP-7."""
    counted = DayCounts(0, tuple((day, days.count(day)) for day in sorted({*days}))).bounded(most)
    assert sum(count for _, count in counted.counts) == len(days)
    assert DayCounts.unpack(counted.pack(), max_days=most) == counted


def test_days_without_rows_are_named() -> None:
    """FP-7."""
    assert [*DayCounts(0, ((3, 1), (4, 9), (7, 1))).missing()] == [5, 6]


@pytest.mark.parametrize("count", [0, 1, 50, 1_000, 100_000])
def test_distinct_values_are_estimated_within_three_standard_errors(count: int) -> None:
    """FP-8."""
    hashes = np.frombuffer(np.random.default_rng(3).bytes(8 * count), np.uint64)
    registers = registers_of(np.concatenate([hashes, hashes]))
    assert estimate(registers) == pytest.approx(count, rel=3 * STANDARD_ERROR, abs=2)
    assert np.array_equal(unpack_registers(pack_registers(registers)), registers)


def test_registers_join_to_those_of_all_values() -> None:
    """FP-8."""
    hashes = [np.frombuffer(random.Random(seed).randbytes(8 * 500), np.uint64) for seed in range(4)]
    joined = np.maximum.reduce([registers_of(each) for each in hashes])
    assert np.array_equal(joined, registers_of(np.concatenate(hashes)))


def test_registers_that_no_hash_gives_are_rejected() -> None:
    """FP-9."""
    with pytest.raises(MalformedError):
        unpack_registers(b"\xff" * 192)
    with pytest.raises(MalformedError):
        unpack_registers(b"\x00" * 191)
