"""When rows of an input came, in event time: the watermark that was known before the block of each.

It follows from the input's chain alone, so that cutting the input into steps changes nothing.

Source: clauses WINDOW-3, WINDOW-5 and WINDOW-8 in ``spec/extensions/event-windows.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import TransformInput, Watermark
from odf_protocol.timestamp import Timestamp
from odf_spark.small_inputs import RowsRead, Work

MIN_US = -(2**62)
"""Before any time that a timestamp can hold, in microseconds since 1970."""

_BATCH_ROWS = 1_000_000  # guess: some tens of megabytes at a time
_PER_MS = 1000
_Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StepArrivals:
    """Rows that are not after the watermark known before their blocks: offset, event time, and this watermark.

    Most rows are after it, and nothing is asked of them.
    """

    offsets: _Int64s
    times_us: _Int64s
    known_us: _Int64s

    @property
    def late_offsets(self) -> _Int64s:
        """Of the rows that are older than the watermark known before their blocks."""
        return self.offsets[self.times_us < self.known_us]


def new_arrivals(source: TransformInput, work: Work) -> StepArrivals:
    """Read when the rows of a step came; they are read once in a request.

    Args:
        source: The input.
        work: Of the request, which knows afterwards what was read, where that is all that the step reads of the input.
    """
    interval = source.offset_interval
    if interval is None:
        return _arrivals(source, (), (0, -1), (), work)
    before = []
    if source.prev_watermark is not None:
        before.append(Watermark(system_time=source.prev_watermark, event_time=source.prev_watermark))
    return _arrivals(source, source.slices, (interval.start, interval.end), (*before, *source.watermarks), work)


def all_arrivals(source: TransformInput, work: Work) -> StepArrivals:
    """Read when the rows of an input came, from the first one to the last of a step; see ``new_arrivals``."""
    last = source.last_offset
    slices = tuple(dict.fromkeys((*source.earlier_slices, *source.slices)))
    marks = (*source.earlier_watermarks, *source.watermarks)
    return _arrivals(source, slices, (0, -1 if last is None else last), marks, work)


def highest_watermark(source: TransformInput) -> Timestamp | None:
    """Return the highest watermark that the input stated up to the end of a step, None where it stated none."""
    known = [mark.event_time for mark in source.watermarks]
    if source.prev_watermark is not None:
        known.append(source.prev_watermark)
    return max(known, default=None)


def rising(marks: Sequence[Watermark], closed_us: int | None) -> list[Watermark]:
    """Leave out watermarks that are not above all before, as chains of others may have them (CHAIN-24)."""
    found = []
    for mark in marks:
        until = unix_us(mark.event_time)
        if closed_us is None or until > closed_us:
            found.append(mark)
            closed_us = until
    return found


def unix_us(time: Timestamp) -> int:
    """Return microseconds since 1970, cut to whole milliseconds."""
    return time.unix_ms * _PER_MS


def _arrivals(
    source: TransformInput, slices: Sequence[Path], interval: tuple[int, int], marks: Sequence[Watermark], work: Work
) -> StepArrivals:
    """Read the rows of an interval of offsets from slices that have them, batch by batch."""
    key = (source.alias, slices, interval, tuple(marks))
    if key not in work.arrivals:
        work.arrivals[key] = _read_arrivals(source, slices, interval, marks, work)
    found: StepArrivals = work.arrivals[key]
    return found


def _read_arrivals(
    source: TransformInput, slices: Sequence[Path], interval: tuple[int, int], marks: Sequence[Watermark], work: Work
) -> StepArrivals:
    first, last = interval
    names = (source.vocabulary.offset, source.vocabulary.event_time)
    ends = np.array([-1 if mark.last_offset is None else mark.last_offset for mark in marks], dtype=np.int64)
    highest = np.array([MIN_US, *(unix_us(mark.event_time) for mark in marks)], dtype=np.int64)
    highest = np.maximum.accumulate(highest)
    nothing = np.zeros(0, dtype=np.int64)
    found, read, extremes = [(nothing, nothing, nothing)], 0, []
    for path in slices if last >= first else ():
        with pq.ParquetFile(path) as file:
            for rows in file.iter_batches(_BATCH_ROWS, columns=[*names]):
                offsets = np.asarray(rows.column(names[0])).astype(np.int64)
                times = _micros(rows.column(names[1]))
                is_asked = (offsets >= first) & (offsets <= last)
                if not is_asked.all():
                    offsets, times = offsets[is_asked], times[is_asked]
                if offsets.size:
                    read += offsets.size
                    extremes += [int(offsets.min()), int(offsets.max())]
                known = highest[np.searchsorted(ends, offsets, side="left")]
                is_behind = times <= known
                found.append((offsets[is_behind], times[is_behind], known[is_behind]))
    if extremes and not first and {*slices} == {*source.earlier_slices, *source.slices}:
        rows_read: RowsRead = {"rows": read, "first": min(extremes), "last": max(extremes)}
        work.read.setdefault((source.alias, last), rows_read)
    return StepArrivals(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _micros(column: pa.Array) -> _Int64s:
    found: _Int64s = np.asarray(column.cast(pa.timestamp("us")).cast(pa.int64()).fill_null(0))
    return found
