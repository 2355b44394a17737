"""Entropy in whole numbers: the same on every machine, as no library computes a logarithm.

Source: clause FP-8 in ``spec/plug-ins/fingerprints.md``.
"""

from typing import Final

import numpy as np

from odf_fingerprints.counted_values import Counts

FRACTION_BITS: Final = 16
_WORK_BITS: Final = 32


def entropy_of(counts: Counts) -> int:
    """Return the entropy of a distribution in units of 2^-16 bits, rounded down, exact to two units.

    ``log2(n) - sum(c * log2(c)) / n`` over the counts c and their sum n.
    """
    total = int(counts.sum())
    if not total:
        return 0
    sizes, times = np.unique(counts, return_counts=True)
    weighted = sum(
        int(size) * int(many) * _log2(int(size)) for size, many in zip(sizes.tolist(), times.tolist(), strict=True)
    )
    found = _log2(total) - -(-weighted // total)
    return max(0, found >> (_WORK_BITS - FRACTION_BITS))


def _log2(number: int) -> int:
    """Return the logarithm in units of 2^-32, rounded down; one bit after the other by squaring."""
    whole = number.bit_length() - 1
    mantissa = (number << 64) >> whole  # 1 to 2, in units of 2^-64
    found = whole
    for _ in range(_WORK_BITS):
        mantissa = mantissa * mantissa >> 64
        found <<= 1
        if mantissa >> 65:
            mantissa >>= 1
            found |= 1
    return found
