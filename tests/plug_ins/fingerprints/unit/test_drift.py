"""Measures of drift against those of all values, by their formulas."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from odf_fingerprints.documents import ColumnFingerprint
from odf_fingerprints.drift import (
    align,
    jensen_shannon,
    kolmogorov_smirnov,
    kolmogorov_smirnov_error,
    population_stability_index,
)
from odf_fingerprints.histograms import EMPTY, MAX_BITS, MIN_FLOOR, Histogram, bin_of
from odf_fingerprints.views import drift_values

RANDOM = np.random.default_rng(11)
Values = npt.NDArray[np.float64]


def histogram_of(values: Values) -> Histogram:
    keys, counts = np.unique([bin_of(float(value), MAX_BITS, MIN_FLOOR) for value in values], return_counts=True)
    return Histogram(MAX_BITS, MIN_FLOOR, tuple(zip(keys.tolist(), counts.tolist(), strict=True))).bounded()


def exact_distance(one: Values, other: Values) -> float:
    places = np.concatenate([one, other])
    shares = [np.searchsorted(np.sort(each), places, side="right") / len(each) for each in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("place", [0.0, 1e6])
def test_kolmogorov_smirnov_is_within_its_stated_error(shift: float, place: float) -> None:
    """FP-10."""
    one, other = RANDOM.normal(size=4_000) + place, RANDOM.normal(size=3_000) + place + shift
    first, second = histogram_of(one), histogram_of(other)
    found, exact = kolmogorov_smirnov(first, second), exact_distance(one, other)
    assert found <= exact + 1e-9
    assert exact <= found + kolmogorov_smirnov_error(first, second) + 1e-9


def test_measures_are_those_of_the_formulas() -> None:
    """FP-10: of two values with shares 1/2, 1/2 and 3/4, 1/4."""
    one, other = Histogram(0, 0, ((1, 2), (2, 2))), Histogram(0, 0, ((1, 3), (2, 1)))
    assert kolmogorov_smirnov(one, other) == pytest.approx(0.25)
    assert population_stability_index(one, other) == pytest.approx(0.25 * math.log(1.5) - 0.25 * math.log(0.5))
    middle = 0.625 * math.log2(1 / 0.625) + 0.375 * math.log2(1 / 0.375)
    own = (1 + 0.75 * math.log2(4 / 3) + 0.25 * 2) / 2
    assert jensen_shannon(one, other) == pytest.approx(math.sqrt(middle - own))


def test_equal_shares_are_no_drift_and_nothing_in_common_is_all() -> None:
    """FP-10."""
    one, twice = Histogram(0, 0, ((1, 5), (4, 5))), Histogram(0, 0, ((1, 10), (4, 10)))
    far = Histogram(0, 0, ((9, 1),))
    for measure in (population_stability_index, jensen_shannon, kolmogorov_smirnov):
        assert measure(one, twice) == 0
    assert jensen_shannon(one, far) == pytest.approx(1)
    assert kolmogorov_smirnov(one, far) == 1
    assert 5 < population_stability_index(one, far) < 20


def test_nothing_has_no_drift() -> None:
    """FP-10."""
    for measure in (population_stability_index, jensen_shannon, kolmogorov_smirnov):
        assert math.isnan(measure(EMPTY, Histogram(0, 0, ((1, 1),))))
        assert math.isnan(measure(Histogram(0, 0, ((1, 1),)), EMPTY))


def test_joining_bins_lowers_a_measure_only() -> None:
    """FP-10: a measure of histograms is a lower bound."""
    one, other = (histogram_of(RANDOM.gamma(shape, 40, 2_000)) for shape in (2.0, 3.0))
    for measure in (jensen_shannon, kolmogorov_smirnov):
        fine = measure(one, other)
        coarse = measure(one.coarsened(0, one.floor), other.coarsened(0, other.floor))
        assert coarse <= fine + 1e-9


def test_all_measures_of_two_columns_bring_them_to_the_same_bins_once() -> None:
    """FP-10."""
    first, second = (histogram_of(RANDOM.normal(size=500) + shift) for shift in (0.0, 0.5))
    one, other = (
        ColumnFingerprint(name="x", type="Float64", kind="number", values=500, packed=each.pack())
        for each in (first, second)
    )
    align.cache_clear()
    assert drift_values(one, other)["kolmogorovSmirnov"]
    assert align.cache_info().misses == 1
    assert align(first, second) != align(second, first)
