"""Which slices before a step its query needs, by the event times of their rows.

An engine says of a query which rows can still count (``Lookback``); here that becomes a list of slices, so that others
are neither looked for nor read. What decides are rows that this node had checked, and watermarks of the inputs' chains,
so every node chooses the same slices of the same chains.

Source: WINDOW-10 and 11 in ``spec/extensions/event-windows.md``, ASOF-10 and 11 in ``spec/extensions/as-of-joins.md``.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odf_engines.contract import Lookback, Watermark
from odf_node.ports.rows import EventTimes
from odf_protocol.events import DataSlice
from odf_protocol.timestamp import Timestamp

Tables = Sequence[pa.Table | None]

MAX_ROWS: Final = 8_388_608  # guess: a gigabyte where all texts are long, else some hundred megabytes
"""Rows that are looked at at once. Every node gives up at as many: what it chooses, others have to choose as well."""


@dataclass(frozen=True, slots=True)
class InputRows:
    """Slices of an input, and what finds out about their rows.

    Attributes:
        earlier: Slices with all rows before the step, oldest first; a bound may cut the last one.
        new: Slices with the rows of the step.
        watermarks: That blocks before the step stated, oldest first.
        event_times: Gives, of each of some slices, the event times of its rows; None: not known.
        read: Gives, of each of some slices, the columns of these names as ``read_times_beside`` does.
        read_newest: Gives, of each of some slices, its versions by these columns as ``find_newest`` does; None where
            the event time of one is not known, or its key.
    """

    earlier: Sequence[DataSlice]
    new: Sequence[DataSlice]
    watermarks: Sequence[Watermark]
    event_times: Callable[[Sequence[DataSlice]], Sequence[EventTimes | None]]
    read: Callable[[Sequence[DataSlice], Sequence[str]], Tables]
    read_newest: Callable[[Sequence[DataSlice], Sequence[str]], Tables]


def count_rows(slices: Sequence[DataSlice]) -> int:
    """Add up the rows of slices, as their blocks state them, which was compared with their files."""
    return sum(each.offset_interval.row_count for each in slices)


def number_alike(columns: Sequence[pa.ChunkedArray], rows: int) -> npt.NDArray[np.int64]:
    """Number rows so that those that are equal in all columns, and only those, have the same number, from 0 on."""
    found = np.zeros(rows, dtype=np.int64)
    for column in columns if rows else ():
        codes = np.asarray(column.combine_chunks().dictionary_encode(null_encoding="encode").indices)
        found = np.unique(found * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return found


_PER_MS: Final = 1000
_MIN_US: Final = -(2**62)  # before any time that a timestamp can hold


def find_current(asked_us: int, table: InputRows, key: Sequence[str]) -> list[DataSlice]:
    """Leave out the slices of a temporal table before a step all of whose versions are superseded.

    Args:
        asked_us: The earliest time for which versions are asked, in microseconds since 1970.
        table: Its rows.
        key: Its primary key.
    """
    tables = _read_newest(table, key) if table.earlier else None
    if tables is None:
        return list(table.earlier)
    rows = pa.concat_tables(tables)
    places = np.repeat(np.arange(len(tables)), [each.num_rows for each in tables])
    keys = number_alike([rows.column(f"{place}") for place in range(len(key))], rows.num_rows)
    times_us = np.asarray(rows.column("time"))
    is_taken = np.asarray(rows.column("is_taken"))
    versions = number_alike([pa.chunked_array([keys]), rows.column("time")], rows.num_rows)
    was_taken = np.isin(versions, versions[is_taken])
    cut = {each.physical_hash for each in table.new}
    # None of the step's own is in time for what is asked, and where a bound cuts a slice the rest comes later.
    before = zip(table.earlier, _known_before(table), strict=True)
    known = [asked_us if each.physical_hash in cut else known_us for each, known_us in before]
    known_us = np.array([*known, *(asked_us for _ in table.new)], dtype=np.int64)
    is_base = ~was_taken & (times_us > known_us[places]) & (times_us <= asked_us)
    base_us = np.full(int(keys.max(initial=0)) + 1, _MIN_US, dtype=np.int64)
    np.maximum.at(base_us, keys[is_base], times_us[is_base])
    kept = set(places[times_us >= base_us[keys]].tolist())
    return [each for place, each in enumerate(table.earlier) if place in kept or each.physical_hash in cut]


def _read_newest(table: InputRows, key: Sequence[str]) -> list[pa.Table] | None:
    """Read the newest versions of all slices; None where those of one are not known, or there are too many."""
    found: list[pa.Table] = []
    for some in _iter_subsets([*table.earlier, *table.new]):
        read = table.read_newest(some, key) if count_rows(some) <= MAX_ROWS else [None]
        found += [each for each in read if each is not None]
        if any(each is None for each in read) or sum(each.num_rows for each in found) > MAX_ROWS:
            return None
    return found


def _iter_subsets(slices: Sequence[DataSlice]) -> Iterator[list[DataSlice]]:
    """Cut slices into subsets that are looked at together: one slice, or few rows."""
    subset: list[DataSlice] = []
    rows = 0
    for each in slices:
        rows += each.offset_interval.row_count
        if subset and rows > MAX_ROWS:
            yield subset
            subset, rows = [], each.offset_interval.row_count
        subset.append(each)
    yield subset


def _known_before(table: InputRows) -> Iterator[int]:
    """Yield the highest watermark that was stated before the block of each slice before the step, in microseconds."""
    known_us, waiting = _MIN_US, deque(table.watermarks)
    for start in (each.offset_interval.start for each in table.earlier):
        while waiting and (waiting[0].last_offset is None or waiting[0].last_offset < start):
            known_us = max(known_us, waiting.popleft().event_time.unix_ms * _PER_MS)
        yield known_us


def find_open_since(since_us: int, follows_us: int, inputs: Sequence[InputRows], alike: Sequence[str]) -> int | None:
    """Return when the first of the rows happened from which others lead, each soon after the one before, to a time.

    Args:
        since_us: That time; what is returned is not after it.
        follows_us: What is soon.
        inputs: Whose rows before the step follow one another.
        alike: Columns in which rows are equal that do.

    Returns:
        Microseconds since 1970; None where some row has no event time, or too many would be looked at.
    """
    spans = [[*zip(each.earlier, each.event_times(each.earlier), strict=True)] for each in inputs]
    firsts = [None if span is None else span.first_us for found in spans for _, span in found]
    if None in firsts:
        return None
    min_us = min((each for each in firsts if each is not None), default=since_us)
    from_us = since_us
    while True:
        near = [[data for data, span in found if span is not None and span.last_us >= from_us] for found in spans]
        if sum(map(count_rows, near)) > MAX_ROWS:
            return None
        tables = [each for source, some in zip(inputs, near, strict=True) for each in source.read(some, alike)]
        known = [each for each in tables if each is not None]
        if len(known) < len(tables):
            return None
        first_us = _first_that_leads_to(since_us, follows_us, known)
        if first_us - follows_us >= from_us or from_us <= min_us:
            return first_us
        # Twice as far back each time, so that in a long session no row is read more often than its length says.
        from_us = min(first_us - follows_us, since_us - 2 * (since_us - from_us))


def _first_that_leads_to(since_us: int, follows_us: int, tables: Sequence[pa.Table]) -> int:
    if not tables:
        return since_us
    # A column that does not tell rows apart in one slice is left out in all.
    reported = [name for name in tables[0].column_names if all(name in each.column_names for each in tables)]
    *columns, times = pa.concat_tables(each.select(reported) for each in tables).columns
    times_us = np.asarray(times)
    kinds = number_alike(columns, len(times_us))
    order = np.lexsort((times_us, kinds))
    kinds, times_us = kinds[order], times_us[order]
    is_first = np.append(True, (np.diff(kinds) != 0) | (np.diff(times_us) > follows_us))
    firsts_us = times_us[is_first]
    lasts_us = times_us[np.append(is_first[1:], True)]
    return int(firsts_us[lasts_us >= since_us].min(initial=since_us))


@dataclass(frozen=True)
class EarlierRows:
    """Chooses among the slices of the inputs of a step.

    Attributes:
        lookbacks: Of the query, by alias.
        reached: The highest watermark that each input stated before the step, by alias.
        inputs: By alias.
    """

    lookbacks: Mapping[str, Lookback]
    reached: Mapping[str, Timestamp | None]
    inputs: Mapping[str, InputRows]

    def choose(self, alias: str) -> list[DataSlice]:
        """Leave out the slices of an input before a step none of whose rows can count for it."""
        rows, lookback = self.inputs[alias], self.lookbacks.get(alias)
        if lookback is None:
            return list(rows.earlier)
        since_us = self._since_us(lookback) if lookback.follows_us is None else self.open_since_us
        for asking in lookback.asked_by if since_us is not None else ():
            since_us = self._since_asked(since_us, self.inputs[asking])
        if since_us is None:
            return list(rows.earlier)
        if lookback.newest_by is not None:
            return find_current(since_us, rows, lookback.newest_by)
        met = rows.event_times(rows.new) if lookback.meets_new else ()
        if None in met:
            return list(rows.earlier)
        times = [each for each in met if each is not None]
        cut = {each.physical_hash for each in rows.new}
        return [
            each
            for each, found in zip(rows.earlier, rows.event_times(rows.earlier), strict=True)
            if found is None
            or found.last_us >= since_us
            or each.physical_hash in cut
            or any(one.first_us <= found.last_us and found.first_us <= one.last_us for one in times)
        ]

    def get_since_us(self, alias: str) -> int | None:
        """Return from which event time on rows count whatever stands beside them; None: the query says."""
        lookback = self.lookbacks.get(alias)
        return self.open_since_us if lookback is not None and lookback.follows_us is not None else None

    @cached_property
    def open_since_us(self) -> int | None:
        """When the first row of the oldest open session happened, in microseconds since 1970; None: all rows count."""
        following = {
            alias: each
            for alias, each in self.lookbacks.items()
            if each.follows_us is not None and each.newest_by is None
        }
        for lookback in following.values():  # which are alike, but for the columns, of which there are none for several
            since_us = self._since_us(lookback)
            if since_us is None or lookback.follows_us is None:
                return None
            inputs = [self.inputs[alias] for alias in following]
            return find_open_since(since_us, lookback.follows_us, inputs, lookback.alike)
        return None

    def _since_asked(self, since_us: int | None, asking: InputRows) -> int | None:
        """Return from which event time on versions are asked, by new rows too; None: from any."""
        times = asking.event_times(asking.new)
        if since_us is None or None in times:
            return None
        return min(since_us, *(each.first_us for each in times if each is not None), since_us)

    def _since_us(self, lookback: Lookback) -> int | None:
        """Return from which event time on rows count, in microseconds since 1970; None: all do."""
        closed = []
        for alias, delay_us in lookback.waits_for.items():
            reached = self.reached.get(alias)
            if reached is None:
                return None
            closed.append(reached.unix_ms * _PER_MS - delay_us)
        return min(closed) - lookback.behind_us if closed else None


def needed_watermarks(stated: Sequence[Watermark], kept: Sequence[DataSlice]) -> tuple[Watermark, ...]:
    """Leave out watermarks that say no more of the rows that were kept: before these, only the highest counts."""
    first = kept[0].offset_interval.start if kept else None
    before = [each for each in stated if first is None or each.last_offset is None or each.last_offset < first]
    if len(before) < 2:
        return tuple(stated)
    highest = max(before, key=lambda each: each.event_time)
    return (highest, *stated[len(before) :])
