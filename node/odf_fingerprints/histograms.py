"""Histograms that are counts and nothing else: they add up, are subtracted, and come out equal in any order.

Bins are cut from the bits of a double: ``2**bits`` bins between a power of two and the next, and one bin for all that
is smaller than ``2**floor``. Nothing is rounded and no logarithm computed, so every machine puts a value into the same
bin. Two histograms of different bins are brought to the coarser of each, which is what would have been counted.

Source: clauses FP-6 and FP-7 in ``spec/plug-ins/fingerprints.md``; IEEE 754-2019 section 3.4 (binary64).
"""

import struct
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from odf_protocol.errors import MalformedError
from odf_protocol.multihash import decode_varint, encode_varint

MANTISSA_BITS: Final = 52  # Source: IEEE 754-2019, binary64
MAX_BITS: Final = 40  # guess: finer than measured values; bins are numbered below 2^52
MIN_FLOOR: Final = -1022  # Source: the same; what is smaller is subnormal, and counts as zero
MAX_FLOOR: Final = 1023
MAX_BINS: Final = 40  # guess: 20 columns in 20 kB; every tenth of the rows has some bins of its own
MAX_COUNT: Final = 2**53 - 1
_BIAS: Final = 1023
_DOUBLE: Final = struct.Struct("<d")
_WORD: Final = struct.Struct("<q")
_GREATEST: Final = (2047 << MANTISSA_BITS) - 1  # the bits of the greatest double, below those of infinity
_MIN_NUMBERS: Final = 4  # bits, floor, one bin, its count


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bins.

    Attributes:
        bits: ``2**bits`` bins for each power of two, 0 to 40.
        floor: What is smaller than ``2**floor`` is in bin 0, -1022 to 1023.
        counts: Bins that are not empty and their counts, sorted; those of negative numbers are negative.
    """

    bits: int
    floor: int
    counts: tuple[tuple[int, int], ...]

    @property
    def total(self) -> int:
        """How many values were counted."""
        return sum(count for _, count in self.counts)

    def coarsened(self, bits: int, floor: int) -> "Histogram":
        """Return what would have been counted with fewer bins; bits and floor are no finer than those here."""
        if (bits, floor) == (self.bits, self.floor):
            return self
        base = (floor - self.floor) << self.bits
        found: dict[int, int] = {}
        for key, count in self.counts:
            above = abs(key) - 1 - base
            place = 0 if above < 0 else (above >> (self.bits - bits)) + 1
            signed = -place if key < 0 else place
            found[signed] = found.get(signed, 0) + count
        return Histogram(bits, floor, tuple(sorted(found.items())))

    def plus(self, other: "Histogram", sign: int = 1) -> "Histogram":
        """Add the counts of another one, or take them away (``sign`` -1); empty bins are left out."""
        if not other.counts:
            return self
        if not self.counts and sign > 0:
            return other
        bits, floor = min(self.bits, other.bits), max(self.floor, other.floor)
        found = dict(self.coarsened(bits, floor).counts)
        for key, count in other.coarsened(bits, floor).counts:
            found[key] = found.get(key, 0) + sign * count
        kept = tuple((key, count) for key, count in sorted(found.items()) if count > 0)
        return Histogram(bits, floor, kept)

    def bounded(self, max_bins: int = MAX_BINS) -> "Histogram":
        """Return it with ``max_bins`` bins at most: first small numbers that are few go into bin 0, then bins join."""
        found = self
        while len(found.counts) > max_bins:
            floor = found.raised_floor()
            if floor > found.floor:
                found = found.coarsened(found.bits, floor)
            elif found.bits:
                found = found.coarsened(found.bits - 1, found.floor)
            else:
                largest = sorted((abs(key) for key, _ in found.counts), reverse=True)
                found = found.coarsened(0, found.floor + largest[max_bins - 1])  # which leaves bins for those above
        return found

    def raised_floor(self) -> int:
        """Return the highest floor that takes every 64th value into bin 0 at most.

        Under the lowest floor bin 0 has zeros alone, which do not count; above it all that it has counts, so that
        histograms that are joined often do not lose more each time.
        """
        places = sorted((abs(key), count) for key, count in self.counts if key or self.floor > MIN_FLOOR)
        allowed = sum(count for _, count in places) >> 6
        lies_below = 0
        for place, count in places:
            lies_below += count
            if lies_below > allowed:
                return self.floor + (0 if place == 0 else (place - 1) >> self.bits)
        return self.floor

    def edges(self, key: int) -> tuple[float, float]:
        """Return the least number of a bin, and the one at which the next begins (for negative numbers: mirrored).

        Behind the last bin no number begins another one: it ends at the greatest double.
        """
        if key == 0:
            return -(2.0**self.floor), 2.0**self.floor
        first = abs(key) - 1 + ((self.floor + _BIAS) << self.bits)
        low, high = (_double(min(each << (MANTISSA_BITS - self.bits), _GREATEST)) for each in (first, first + 1))
        return (low, high) if key > 0 else (-high, -low)

    def quantile(self, share: float) -> float:
        """Return the middle of the bin below whose end ``share`` of the values lie; the error is half of the bin."""
        sums = [*accumulate(count for _, count in self.counts)]
        if not sums:
            raise ValueError("a histogram of nothing has no quantiles")
        low, high = self.edges(self.counts[min(bisect_left(sums, share * sums[-1]), len(sums) - 1)][0])
        return low / 2 + high / 2

    def pack(self) -> bytes:
        """Write it: bits, floor + 1022, the first bin (zigzag), its count - 1, then steps - 1 and counts - 1."""
        if not self.counts:
            return b""
        numbers = [self.bits, self.floor - MIN_FLOOR, _zigzag(self.counts[0][0]), self.counts[0][1] - 1]
        for (before, _), (key, count) in zip(self.counts, self.counts[1:], strict=False):
            numbers += [key - before - 1, count - 1]
        return b"".join(map(encode_varint, numbers))

    @classmethod
    def unpack(cls, raw: bytes, *, max_bins: int = MAX_BINS) -> "Histogram":
        """Read what ``pack`` writes, and nothing else.

        Raises:
            MalformedError: It is something else, or larger.
        """
        if not raw:
            return EMPTY
        numbers = _numbers(raw, 2 + 2 * max_bins)
        if len(numbers) % 2 or numbers[0] > MAX_BITS or numbers[1] > MAX_FLOOR - MIN_FLOOR:
            raise MalformedError("histogram", expected="bits, floor, and a step and a count for each bin")
        bits, floor, key = numbers[0], numbers[1] + MIN_FLOOR, _unzigzag(numbers[2])
        counts = [(key, numbers[3] + 1)]
        for step, count in zip(numbers[4::2], numbers[5::2], strict=True):
            key += step + 1
            counts.append((key, count + 1))
        limit = ((MAX_FLOOR - floor + 1) << bits) + 1
        if not (-limit < counts[0][0] and key < limit) or sum(count for _, count in counts) > MAX_COUNT:
            raise MalformedError("histogram", expected="bins of doubles, and counts up to 2^53", found=f"bin {key}")
        return cls(bits, floor, tuple(counts))


EMPTY: Final = Histogram(MAX_BITS, MIN_FLOOR, ())


@dataclass(frozen=True, slots=True)
class DayCounts:
    """Rows by calendar days (UTC), or by runs of ``2**shift`` days where there are too many.

    Attributes:
        shift: 0: single days.
        counts: Number of the day since 1970-01-01, shifted, and rows; sorted.
    """

    shift: int
    counts: tuple[tuple[int, int], ...]

    def coarsened(self, shift: int) -> "DayCounts":
        """Return what would have been counted by longer runs of days."""
        found: dict[int, int] = {}
        for day, count in self.counts:
            place = day >> (shift - self.shift)
            found[place] = found.get(place, 0) + count
        return DayCounts(shift, tuple(sorted(found.items())))

    def plus(self, other: "DayCounts", sign: int = 1) -> "DayCounts":
        """Add the counts of another one, or take them away."""
        shift = max(self.shift, other.shift)
        found = dict(self.coarsened(shift).counts)
        for day, count in other.coarsened(shift).counts:
            found[day] = found.get(day, 0) + sign * count
        return DayCounts(shift, tuple((day, count) for day, count in sorted(found.items()) if count > 0))

    def bounded(self, max_days: int) -> "DayCounts":
        """Return it with ``max_days`` entries at most, two or more: days before and after 1970 never join."""
        found = self
        while len(found.counts) > max_days:
            found = found.coarsened(found.shift + 1)
        return found

    def missing(self) -> Iterator[int]:
        """Yield the days between the first and the last that have no row; of longer runs, the first day of each."""
        for (before, _), (day, _) in zip(self.counts, self.counts[1:], strict=False):
            yield from (each << self.shift for each in range(before + 1, day))

    def pack(self) -> bytes:
        """Write it as ``Histogram.pack`` does, with the shift before."""
        return b"" if not self.counts else encode_varint(self.shift) + Histogram(0, MIN_FLOOR, self.counts).pack()

    @classmethod
    def unpack(cls, raw: bytes, *, max_days: int) -> "DayCounts":
        """Read what ``pack`` writes, and nothing else.

        Raises:
            MalformedError: It is something else, or larger.
        """
        if not raw:
            return NO_DAYS
        numbers = _numbers(raw, 3 + 2 * max_days)
        if numbers[0] > _MAX_SHIFT or numbers[1:3] != [0, 0] or not len(numbers) % 2:
            raise MalformedError("days", expected="a shift, and a step and a count for each day")
        key = _unzigzag(numbers[3])
        counts = [(key, numbers[4] + 1)]
        for step, count in zip(numbers[5::2], numbers[6::2], strict=True):
            key += step + 1
            counts.append((key, count + 1))
        if max(abs(counts[0][0]), abs(key)) > _MAX_DAY or sum(count for _, count in counts) > MAX_COUNT:
            raise MalformedError("days", expected="days of timestamps, and counts up to 2^53", found=f"day {key}")
        return cls(numbers[0], tuple(counts))


NO_DAYS: Final = DayCounts(0, ())
_MAX_DAY: Final = 2**37  # Source: 2^63 milliseconds have fewer days
_MAX_SHIFT: Final = 37


def bin_of(value: float, bits: int, floor: int) -> int:
    """Return the bin of one finite number; what ``summaries`` does for many."""
    size = abs(value)
    if size < 2.0**floor:
        return 0
    word: int = _WORD.unpack(_DOUBLE.pack(size))[0]
    place = (word >> (MANTISSA_BITS - bits)) - ((floor + _BIAS) << bits) + 1
    return -place if value < 0 else place


def _double(word: int) -> float:
    found: float = _DOUBLE.unpack(_WORD.pack(word))[0]
    return found


def _zigzag(number: int) -> int:
    return number * 2 if number >= 0 else -number * 2 - 1


def _unzigzag(number: int) -> int:
    return -(number + 1) // 2 if number % 2 else number // 2


def _numbers(raw: bytes, max_numbers: int) -> list[int]:
    numbers: list[int] = []
    position = 0
    while position < len(raw):
        number, position = decode_varint(raw, position)
        numbers.append(number)
        if len(numbers) > max_numbers:
            raise MalformedError("histogram", expected=f"at most {max_numbers} numbers")
    if len(numbers) < _MIN_NUMBERS:
        raise MalformedError("histogram", expected=f"at least {_MIN_NUMBERS} numbers", found=len(numbers))
    return numbers
