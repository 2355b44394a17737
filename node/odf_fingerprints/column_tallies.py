"""One column of the rows that a slice adds, or takes away: what is counted of it, and what that comes to.

Source: clauses FP-4 and FP-8 in ``spec/plug-ins/fingerprints.md``.
"""

from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from odf_fingerprints.counted_texts import TextCounts
from odf_fingerprints.counted_values import CountedValues, Numbers, count_numbers, hash_words
from odf_fingerprints.distinct import REGISTERS, pack_registers, registers_of
from odf_fingerprints.documents import MAX_DAYS, MAX_TOP, PROBABILITIES, ColumnFingerprint, Counted, Kind
from odf_fingerprints.entropy import entropy_of
from odf_fingerprints.histograms import EMPTY, MIN_FLOOR, NO_DAYS, DayCounts, Histogram
from odf_fingerprints.number_bins import histogram_of
from odf_protocol.hashing.v1_leaf import normalized

MAX_EXACT_ROWS: Final = 1 << 24
"""Rows whose values are sorted at once.  # guess: half a gigabyte of memory; of more, what joins is joined"""
_DAY_MS: Final = 86_400_000
_MAX_MS: Final = 2**53
_PER_MS: Final = {"s": 1_000, "ms": 1, "us": -1_000, "ns": -1_000_000}
_THOUSANDTHS: Final = tuple(round(each * 1_000) for each in PROBABILITIES)


class Side(Enum):
    """Which rows of a slice."""

    ADDED = "added"
    REMOVED = "removed"


class ColumnTally:
    """Counts the values of one column, in pieces of a fixed number of rows.

    Args:
        name: Of the column.
        type_text: As ``describe_type`` writes it.
        side: Rows added, or taken away.
        rows: How many there will be.
        is_shown: Whether frequent values are stated.
        system_time_ms: Of the block, in milliseconds since 1970, where the column is the event time; else None.
    """

    def __init__(
        self, name: str, type_text: str, side: Side, rows: int, *, is_shown: bool, system_time_ms: int | None
    ) -> None:
        self._name, self._type, self._side, self._is_shown = name, type_text, side, is_shown
        self._system_time_ms = system_time_ms
        self._kind: Kind = "other"
        self._nulls = self._values = self._not_finite = self._pieces = self._held_rows = 0
        self._held: list[Numbers] = []
        self._histogram = EMPTY
        self._registers = np.zeros(REGISTERS, np.uint8)
        self._counted = count_numbers(np.zeros(0, np.int64))
        self._ends: tuple[float, float] | None = None
        self._days, self._delays = NO_DAYS, EMPTY
        self._texts = TextCounts(rows, is_sampled=side is Side.ADDED, is_shown=is_shown)

    def add(self, array: pa.Array) -> None:
        """Count the values of some rows, in their order."""
        self._nulls += array.null_count
        self._values += len(array) - array.null_count
        if pat.is_dictionary(array.type):
            self._kind = "text"
            self._texts.add(array)
            return
        array = normalized(array)
        numbers = _numbers_of(array)
        if numbers is None:
            return
        self._kind, values = numbers
        while values.size:
            room = MAX_EXACT_ROWS - self._held_rows
            self._held.append(values[:room])
            self._held_rows += min(room, values.size)
            values = values[room:]
            if self._held_rows == MAX_EXACT_ROWS:
                self._count()

    def finish(self) -> ColumnFingerprint:
        """Return what was counted."""
        if self._kind == "text":
            return self._finish_texts()
        self._count()
        is_added = self._side is Side.ADDED
        is_exact = is_added and self._kind != "other" and self._pieces <= 1
        counted = self._counted if is_exact else None
        finite = None if counted is None else _finite(counted)
        ends = self._ends if is_added else None
        return ColumnFingerprint(
            name=self._name,
            type=self._type,
            kind=self._kind,
            values=self._values,
            nulls=self._nulls,
            not_finite=self._not_finite,
            packed=self._histogram.bounded().pack(),
            distinct=None if counted is None else len(counted.values),
            sketch=pack_registers(self._registers) if is_added and self._pieces else b"",
            min="" if ends is None else repr(ends[0]),
            max="" if ends is None else repr(ends[1]),
            quantiles=() if finite is None else _quantiles(finite),
            entropy=None if counted is None else entropy_of(counted.counts),
            top=_top(counted) if counted is not None and self._is_shown else (),
        )

    def finish_times(self) -> tuple[bytes, bytes]:
        """Return the days and the delays of event times, packed; of ``finish`` before it."""
        return self._days.bounded(MAX_DAYS).pack(), self._delays.bounded().pack()

    def _count(self) -> None:
        if not self._held:
            return
        counted = count_numbers(np.concatenate(self._held))
        self._held, self._held_rows = [], 0
        self._pieces += 1
        self._counted = counted
        finite = _finite(counted)
        self._not_finite += counted.total - finite.total
        doubles = CountedValues(finite.values.astype(np.float64), finite.counts)
        if self._kind == "flag":
            places = zip(finite.values.tolist(), finite.counts.tolist(), strict=True)
            self._histogram = self._histogram.plus(Histogram(0, MIN_FLOOR, tuple(places)))
        else:
            self._histogram = self._histogram.plus(histogram_of(doubles))
        if finite.values.size:
            ends = float(doubles.values[0]), float(doubles.values[-1])
            self._ends = ends if self._ends is None else (min(self._ends[0], ends[0]), max(self._ends[1], ends[1]))
        if self._kind == "time" and self._system_time_ms is not None:
            self._count_times(counted, self._system_time_ms)
        if self._side is Side.ADDED:
            np.maximum(self._registers, registers_of(hash_words(counted.values)), out=self._registers)

    def _count_times(self, times: CountedValues, system_time_ms: int) -> None:
        days = np.floor_divide(times.values, _DAY_MS)
        places = np.flatnonzero(np.concatenate([[True], days[1:] != days[:-1]]))
        by_day = zip(days[places].tolist(), np.add.reduceat(times.counts, places).tolist(), strict=True)
        self._days = self._days.plus(DayCounts(0, tuple(by_day)).bounded(MAX_DAYS))
        delays = CountedValues((system_time_ms - times.values.astype(np.float64))[::-1], times.counts[::-1])
        self._delays = self._delays.plus(histogram_of(delays))

    def _finish_texts(self) -> ColumnFingerprint:
        found = self._texts.finish()
        is_added = self._side is Side.ADDED
        return ColumnFingerprint(
            name=self._name,
            type=self._type,
            kind="text",
            values=self._values,
            nulls=self._nulls,
            packed=found.categories.pack(),
            distinct=found.distinct if is_added else None,
            sketch=pack_registers(found.registers) if is_added and self._values else b"",
            entropy=found.entropy if is_added else None,
            lengths=found.lengths.pack(),
            shapes=found.shapes if is_added else (),
            top=found.top if is_added else (),
        )


def _numbers_of(array: pa.Array) -> tuple[Kind, Numbers] | None:
    """Return values that are not null as whole numbers of 64 bits or doubles; None where they are neither."""
    kind = array.type
    array = array.drop_null() if array.null_count else array
    if pat.is_boolean(kind):
        return "flag", np.asarray(array.cast(pa.int64()))
    if pat.is_floating(kind) or pat.is_decimal(kind):
        return "number", np.asarray(array.cast(pa.float64()))
    if pat.is_uint64(kind):
        return "number", np.asarray(array)
    if pat.is_integer(kind):
        return "number", np.asarray(array.cast(pa.int64()))
    if pat.is_date32(kind):
        return "time", np.asarray(array.view(pa.int32())).astype(np.int64) * _DAY_MS
    if pat.is_timestamp(kind):
        return "time", _milliseconds(np.asarray(array.view(pa.int64())), kind.unit)
    if pat.is_time32(kind) or pat.is_time64(kind) or pat.is_duration(kind):
        whole = pa.int32() if pat.is_time32(kind) else pa.int64()
        return "number", np.asarray(array.view(whole)).astype(np.int64)
    return None


def _milliseconds(times: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    """Return milliseconds since 1970; what is finer goes down, what is beyond 2^53 counts as that."""
    factor = _PER_MS[unit]
    if factor < 0:
        return times // -factor
    return np.clip(times, -_MAX_MS // factor, _MAX_MS // factor) * factor


def _finite(counted: CountedValues) -> CountedValues:
    return counted.at(np.isfinite(counted.values)) if counted.values.dtype.kind == "f" else counted


def _quantiles(finite: CountedValues) -> tuple[str, ...]:
    """Return the least values below or at which so many thousandths of the values lie."""
    total = finite.total
    if not total:
        return ()
    ranks = [(each * total + 999) // 1_000 for each in _THOUSANDTHS]
    places = np.searchsorted(np.cumsum(finite.counts), ranks)
    return tuple(repr(float(finite.values[place])) for place in places)


def _top(counted: CountedValues) -> tuple[Counted, ...]:
    most = np.lexsort((np.arange(counted.counts.size), -counted.counts))[:MAX_TOP]
    found = [(str(counted.values[place].item()), int(counted.counts[place])) for place in most]
    return tuple(sorted(found, key=lambda each: (-each[1], each[0])))
