"""How far two distributions lie apart: measures of two histograms, each with its formula and the error of its bins.

Both histograms are brought to the coarser bins of the two first. All measures are pure, and 0 for equal shares. A
histogram of nothing has no shares: the measures of it are NaN.

Source: clause FP-10 in ``spec/plug-ins/fingerprints.md``; when each of them lies: ``spec/guides/fingerprints.md``.
"""

import math
from functools import lru_cache
from typing import Final

from odf_fingerprints.documents import ColumnFingerprint
from odf_fingerprints.histograms import Histogram

MIN_SHARE: Final = 1e-4
"""Stands for the share of an empty bin in the population stability index, which has none.  # guess, as is usual"""
MAX_GROUPS: Final = 10  # Source: Siddiqi 2006, "Credit Risk Scorecards": ten classes, as usual for the index
Shares = tuple[float, ...]


@lru_cache(maxsize=4)  # the measures of two histograms are asked for one after the other
def align(reference: Histogram, other: Histogram) -> tuple[tuple[int, ...], Shares, Shares]:
    """Bring two histograms to the same bins, once for all measures.

    Returns:
        The bins that are not empty in both, and the shares of each histogram in them (0 to 1).
    """
    bits, floor = min(reference.bits, other.bits), max(reference.floor, other.floor)
    if not reference.counts or not other.counts:  # the bins of nothing are as fine as can be
        filled = reference if reference.counts else other
        bits, floor = filled.bits, filled.floor
    first, second = (dict((each.coarsened(bits, floor) if each.counts else each).counts) for each in (reference, other))
    bins = tuple(sorted({*first, *second}))
    return bins, _shares(first, bins), _shares(second, bins)


def _shares(counts: dict[int, int], bins: tuple[int, ...]) -> Shares:
    total = max(1, sum(counts.values()))
    return tuple(counts.get(key, 0) / total for key in bins)


def population_stability_index(reference: Histogram, other: Histogram) -> float:
    """Return the population stability index over groups of bins with about a tenth of the reference each.

    ``sum((q - p) * ln(q / p))`` over the groups, with the shares p of the reference and q of the other; a share of 0
    counts as 0.0001, which bounds what one group adds to 9.2. 0 and more. By convention below 0.1 is no change, above
    0.25 a change.

    Error: grouping only lowers it (data processing inequality of the symmetric Kullback-Leibler divergence), so it is a
    lower bound of that of the values. For equal distributions it is about (groups - 1) * (1/n + 1/m) by chance alone.
    """
    return _index(*_grouped(reference, other))


def jensen_shannon(reference: Histogram, other: Histogram) -> float:
    """Return the Jensen-Shannon distance: the square root of the divergence in bits; 0 to 1.

    ``sqrt(H((p + q) / 2) - (H(p) + H(q)) / 2)`` with ``H(p) = -sum(p * log2(p))`` over the bins.

    Error: joining bins only lowers it, so it is a lower bound of that of the values.
    """
    _, first, second = align(reference, other)
    if not sum(first) or not sum(second):
        return math.nan
    divergence = sum(
        (p * math.log2(2 * p / (p + q)) if p else 0.0) + (q * math.log2(2 * q / (p + q)) if q else 0.0)
        for p, q in zip(first, second, strict=True)
    )
    return math.sqrt(min(1.0, max(0.0, divergence / 2)))


def kolmogorov_smirnov(reference: Histogram, other: Histogram) -> float:
    """Return the Kolmogorov-Smirnov distance: the greatest difference of the two distribution functions; 0 to 1.

    ``max over bins of abs(F(end of the bin) - G(end of the bin))``. Means something for ordered values alone.

    Error: it is exact at the ends of bins, hence a lower bound; between two ends it may be more by no more than
    ``kolmogorov_smirnov_error``.
    """
    _, first, second = align(reference, other)
    if not sum(first) or not sum(second):
        return math.nan
    greatest = below = 0.0
    for p, q in zip(first, second, strict=True):
        below += p - q
        greatest = max(greatest, abs(below))
    return min(1.0, greatest)


def kolmogorov_smirnov_error(reference: Histogram, other: Histogram) -> float:
    """Return by how much the true distance may exceed the one of the bins: the greatest share that one bin has."""
    _, first, second = align(reference, other)
    return max((max(p, q) for p, q in zip(first, second, strict=True)), default=math.nan)


def entropy_change(reference: ColumnFingerprint, other: ColumnFingerprint) -> float:
    """Return by how many bits the entropy of the values differs; positive where the other is more varied."""
    return other.entropy_bits - reference.entropy_bits


def _grouped(reference: Histogram, other: Histogram) -> tuple[list[float], list[float]]:
    """Join neighbouring bins until each group has at least a tenth of the reference, or is the last."""
    _, first, second = align(reference, other)
    groups: list[tuple[float, float]] = []
    p_sum = q_sum = 0.0
    for p, q in zip(first, second, strict=True):
        p_sum, q_sum = p_sum + p, q_sum + q
        if p_sum >= 1 / MAX_GROUPS:
            groups.append((p_sum, q_sum))
            p_sum = q_sum = 0.0
    if p_sum or q_sum:
        groups.append((p_sum, q_sum))
    return [p for p, _ in groups], [q for _, q in groups]


def _index(first: list[float], second: list[float]) -> float:
    if not sum(first) or not sum(second):
        return math.nan
    pairs = [(max(p, MIN_SHARE), max(q, MIN_SHARE)) for p, q in zip(first, second, strict=True)]
    return sum((q - p) * math.log(q / p) for p, q in pairs)
