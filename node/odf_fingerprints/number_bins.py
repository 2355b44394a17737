"""Histograms of many numbers at once; what ``Histogram.bounded`` gives of the finest one, without making that.

Source: clauses FP-6 and FP-7 in ``spec/plug-ins/fingerprints.md``.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from odf_fingerprints.counted_values import CountedValues, Counts
from odf_fingerprints.histograms import EMPTY, MANTISSA_BITS, MAX_BINS, MAX_BITS, MIN_FLOOR, Histogram

_BIAS: Final = 1023
_FIRST_BITS: Final = 12
"""Of many values these bins are few.  # guess: some thousands"""
_Keys = npt.NDArray[np.int64]


def histogram_of(numbers: CountedValues) -> Histogram:
    """Count finite doubles, sorted, in 40 bins at most."""
    if not numbers.values.size:
        return EMPTY
    words = np.abs(numbers.values).view(np.int64)
    is_negative = np.signbit(numbers.values)
    first = _joined(_keys(words, is_negative, _FIRST_BITS), numbers.counts)
    octaves = _joined(_coarser(first[0], _FIRST_BITS, 0, MIN_FLOOR), first[1])
    floor = MIN_FLOOR
    if first[0].size > MAX_BINS:
        floor = _histogram(*octaves, 0, MIN_FLOOR).raised_floor()
        low, high, keys, counts, most = 0, _FIRST_BITS, *first, _FIRST_BITS
    if first[0].size <= MAX_BINS or _bins(_coarser(first[0], _FIRST_BITS, _FIRST_BITS, floor)) <= MAX_BINS:
        keys, counts, most = _keys(words, is_negative, MAX_BITS), numbers.counts, MAX_BITS
        low, high = _FIRST_BITS, MAX_BITS
        if _bins(keys) > MAX_BINS:
            floor = _histogram(*octaves, 0, MIN_FLOOR).raised_floor()
    while low < high:
        middle = (low + high + 1) // 2
        if _bins(_coarser(keys, most, middle, floor)) <= MAX_BINS:
            low = middle
        else:
            high = middle - 1
    return _histogram(*_joined(_coarser(keys, most, low, floor), counts), low, floor).bounded()


def _keys(words: _Keys, is_negative: npt.NDArray[np.bool_], bits: int) -> _Keys:
    """Give the bins of doubles above the lowest floor."""
    keys = (words >> (MANTISSA_BITS - bits)) - (((MIN_FLOOR + _BIAS) << bits) - 1)
    np.maximum(keys, 0, out=keys)
    np.negative(keys, out=keys, where=is_negative)
    return keys


def _coarser(keys: _Keys, most: int, bits: int, floor: int) -> _Keys:
    """Give bins of fewer bits and a higher floor; see ``Histogram.coarsened``."""
    above = np.abs(keys) - (1 + ((floor - MIN_FLOOR) << most))
    found = np.where(above < 0, 0, (above >> (most - bits)) + 1)
    np.negative(found, out=found, where=keys < 0)
    return found


def _bins(keys: _Keys) -> int:
    return int(np.count_nonzero(keys[1:] != keys[:-1])) + 1


def _joined(keys: _Keys, counts: Counts) -> tuple[_Keys, Counts]:
    places = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[places], np.add.reduceat(counts, places)


def _histogram(keys: _Keys, counts: Counts, bits: int, floor: int) -> Histogram:
    return Histogram(bits, floor, tuple(zip(keys.tolist(), counts.tolist(), strict=True)))
