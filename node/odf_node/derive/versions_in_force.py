"""Which slices of a temporal table have versions that are asked for: those that could be in force at a time, or later.

A version is superseded where a newer one of its key was in time, is not after the earliest time that is asked for, and
was never taken: no later one of these times gives it. What is not superseded is handed over, taken or not.

Source: ASOF-11 in ``spec/extensions/as-of-joins.md``.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from odf_node.derive.input_rows import MOST_ROWS, InputRows, count_rows, number_alike
from odf_protocol.events import DataSlice

if TYPE_CHECKING:
    import pyarrow as pa

_PER_MS: Final = 1000
_LEAST_US: Final = -(2**62)  # before any time that a timestamp can hold


def find_in_force(asked_us: int, table: InputRows, key: Sequence[str]) -> list[DataSlice]:
    """Leave out the slices of a temporal table before a step all of whose versions are superseded.

    Args:
        asked_us: The earliest time for which versions are asked, in microseconds since 1970.
        table: Its rows.
        key: Its primary key.
    """
    import numpy as np
    import pyarrow as pa

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
    base_us = np.full(int(keys.max(initial=0)) + 1, _LEAST_US, dtype=np.int64)
    np.maximum.at(base_us, keys[is_base], times_us[is_base])
    kept = set(places[times_us >= base_us[keys]].tolist())
    return [each for place, each in enumerate(table.earlier) if place in kept or each.physical_hash in cut]


def _read_newest(table: InputRows, key: Sequence[str]) -> "list[pa.Table] | None":
    """Read the newest versions of all slices; None where those of one are not known, or there are too many."""
    found: list[pa.Table] = []
    for some in _iter_portions([*table.earlier, *table.new]):
        read = table.read_newest(some, key) if count_rows(some) <= MOST_ROWS else [None]
        found += [each for each in read if each is not None]
        if any(each is None for each in read) or sum(each.num_rows for each in found) > MOST_ROWS:
            return None
    return found


def _iter_portions(slices: Sequence[DataSlice]) -> Iterator[list[DataSlice]]:
    """Cut slices into portions that are looked at together: one slice, or few rows."""
    portion: list[DataSlice] = []
    rows = 0
    for each in slices:
        rows += each.offset_interval.row_count
        if portion and rows > MOST_ROWS:
            yield portion
            portion, rows = [], each.offset_interval.row_count
        portion.append(each)
    yield portion


def _known_before(table: InputRows) -> Iterator[int]:
    """Yield the highest watermark that was stated before the block of each slice before the step, in microseconds."""
    known_us, waiting = _LEAST_US, deque(table.watermarks)
    for start in (each.offset_interval.start for each in table.earlier):
        while waiting and (waiting[0].last_offset is None or waiting[0].last_offset < start):
            known_us = max(known_us, waiting.popleft().event_time.unix_ms * _PER_MS)
        yield known_us
