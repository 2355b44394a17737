"""Values in their order, each once, with how often it is there: what all figures of a column are made of.

Source: clause FP-4 in ``spec/plug-ins/fingerprints.md``.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_MAX_RANGE: Final = 1 << 22
"""Whole numbers that lie so close are counted in a table.  # guess: 32 MB of counts"""
_MIXED: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Source: Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number Generators" (SplitMix64)."""

Numbers = npt.NDArray[Any]
Counts = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class CountedValues:
    """Values, sorted, and their counts, which are positive."""

    values: Numbers
    counts: Counts

    @property
    def total(self) -> int:
        """How many values were counted."""
        return int(self.counts.sum())

    def at(self, kept: npt.NDArray[np.bool_]) -> "CountedValues":
        """Return some of them."""
        return CountedValues(self.values[kept], self.counts[kept])


def count_numbers(numbers: Numbers) -> CountedValues:
    """Count whole numbers of 64 bits, or doubles: 0.0 is -0.0, and all NaN are one, the last.

    Args:
        numbers: In any order; may be changed.
    """
    if not numbers.size:
        return CountedValues(numbers, np.zeros(0, np.int64))
    if numbers.dtype.kind == "f":
        numbers = numbers + 0.0  # which makes one of the two zeros
    else:
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < min(_MAX_RANGE, 4 * numbers.size):
            table = np.bincount((numbers - numbers.dtype.type(low)).astype(np.int64))
            places = np.flatnonzero(table)
            return CountedValues(places.astype(numbers.dtype) + numbers.dtype.type(low), table[places])
    if not bool((numbers[1:] >= numbers[:-1]).all()):
        numbers = np.sort(numbers)
    is_first = np.empty(numbers.size, np.bool_)
    is_first[0] = True
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    if numbers.dtype.kind == "f" and np.isnan(numbers[-1]):
        is_first[int(np.searchsorted(numbers, np.nan)) + 1 :] = False
    places = np.flatnonzero(is_first)
    return CountedValues(numbers[places], np.diff(places, append=numbers.size))


def count_hashes(hashes: Words, counts: Counts) -> CountedValues:
    """Add up the counts of hashes, each of which may be there several times."""
    order = np.argsort(hashes, kind="stable")
    hashes, counts = hashes[order], counts[order]
    places = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])) if hashes.size else order
    return CountedValues(hashes[places], np.add.reduceat(counts, places) if places.size else counts)


def hash_words(values: Numbers) -> Words:
    """Mix the bits of numbers of 64 bits, so that each bit of the result depends on all of them."""
    words = values.view(np.uint64).copy()
    for shift, factor in zip((30, 27), _MIXED, strict=True):
        words ^= words >> np.uint64(shift)
        words *= factor
    words ^= words >> np.uint64(31)
    return words
