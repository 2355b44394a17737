"""Histograms in a terminal: a line of eight heights.

Source: clause FP-15 in ``spec/plug-ins/fingerprints.md``.
"""

import math
from collections.abc import Sequence
from typing import Final

from odf_fingerprints.documents import ColumnFingerprint
from odf_fingerprints.histograms import Histogram

HEIGHTS: Final = " ▁▂▃▄▅▆▇█"
WIDTH: Final = 16


def draw(shares: Sequence[float]) -> str:
    """Draw one height for each share; 0 is blank, the greatest is full, and no other than 0 is blank."""
    greatest = max(shares, default=0.0)
    return "".join(HEIGHTS[max(1, math.ceil(each * 8 / greatest))] if each > 0 else HEIGHTS[0] for each in shares)


def spread_bins(histograms: Sequence[Histogram], *, width: int = WIDTH) -> list[list[float]]:
    """Spread histograms of numbers over the bins that all of them have, from the first to the last; shares of each.

    Empty bins around zero are left out. Where values reach over many powers of two the scale is therefore logarithmic,
    and linear where they lie close.
    """
    filled = [each for each in histograms if each.counts]
    if not filled:
        return [[0.0] * width for _ in histograms]
    bits, floor = min(each.bits for each in filled), max(each.floor for each in filled)
    counted = [each.coarsened(bits, floor).counts if each.counts else () for each in histograms]
    gap = min((abs(key) for counts in counted for key, _ in counts if key), default=1) - 1
    coarse = [[(key - gap * ((key > 0) - (key < 0)), count) for key, count in counts] for counts in counted]
    first, last = min(each[0][0] for each in coarse if each), max(each[-1][0] for each in coarse if each)
    span = last - first + 1
    found = []
    for counts in coarse:
        shares, total = [0.0] * width, sum(count for _, count in counts)
        for key, count in counts:
            start, end = (key - first) * width / span, (key - first + 1) * width / span
            for place in range(int(start), min(width, math.ceil(end))):
                within = max(0.0, min(end, place + 1) - max(start, place))
                shares[place] += count / total * within / (end - start)
        found.append(shares)
    return found


def categories(column: ColumnFingerprint, *, width: int = WIDTH) -> list[float]:
    """Give the shares of the categories of flags and texts, the most frequent first."""
    total = column.histogram.total
    shares = sorted((count / total for _, count in column.histogram.counts), reverse=True)[:width] if total else []
    return [*shares, *[0.0] * (width - len(shares))]
