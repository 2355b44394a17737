"""The event times of the rows in a file, from the values that stand there: what its footer says decides nothing.

Source: WINDOW-10 and 11 in ``spec/extensions/event-windows.md``, ENGINE-28 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odf_node.ports.rows import EventTimes

if TYPE_CHECKING:
    import pyarrow as pa

_DAY_US: Final = 86_400_000_000
_NANOSECONDS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def read_event_times(path: Path, column: str) -> EventTimes | None:
    """Return the oldest and the newest time in a column; None where it is none of times, or some row has none.

    Args:
        path: A file that this node wrote.
        column: Of event times.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    first = last = None
    with pq.ParquetFile(path) as file:
        if column not in file.schema_arrow.names:
            return None
        kind = file.schema_arrow.field(column).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
            return None
        for batch in file.iter_batches(columns=[column]):
            values = batch.column(0)
            if values.null_count:
                return None
            whole = values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
            least, most = (each.as_py() for each in pc.min_max(whole).values())
            first = least if first is None else min(first, least)
            last = most if last is None else max(last, most)
    if first is None or last is None:
        return None
    return EventTimes(_floor_us(first, kind), -_floor_us(-last, kind))


def read_times_beside(paths: Sequence[Path], column: str, beside: Sequence[str]) -> "pa.Table | None":
    """Return the event time of each row of some files, in microseconds, and what tells its row from others.

    Args:
        paths: Of files that this node wrote, with the rows of one input.
        column: Of event times.
        beside: Other columns. Values that are equal are equal texts; those of a type that says it in another way are
            left out, as if they were equal.

    Returns:
        The other columns as texts, and the times last; None where a time is missing or finer than microseconds.
    """
    import pyarrow as pa

    wanted = pa.schema([*((f"{place}", pa.large_string()) for place in range(len(beside))), ("time", pa.int64())])
    tables = []
    for path in paths:
        times = _read_columns(path, (column,))[0]
        if times is None or times.null_count or (micros := _micros(times)) is None:
            return None
        tables.append([*_read_columns(path, beside), micros])
    for place in range(len(beside)):
        kinds = [None if table[place] is None else table[place].type for table in tables]
        is_told = all(kind is None or _is_told_by_text(kind) for kind in kinds)
        for table in tables:
            told = table[place] if is_told else None
            table[place] = pa.nulls(len(table[-1]), pa.large_string()) if told is None else told.cast(pa.large_string())
    return pa.concat_tables([wanted.empty_table(), *(pa.table(table, schema=wanted) for table in tables)])


def _read_columns(path: Path, names: Sequence[str]) -> "list[pa.ChunkedArray | None]":
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        there = [each for each in names if each in file.schema_arrow.names]
        rows = file.read(columns=there)
        return [rows.column(each) if each in there else None for each in names]


def _micros(times: "pa.ChunkedArray") -> "pa.ChunkedArray | None":
    import pyarrow as pa

    try:
        return times.cast(pa.timestamp("us", getattr(times.type, "tz", None))).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _is_told_by_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    test = pa.types
    return any(
        each(kind) for each in (test.is_integer, test.is_boolean, test.is_string, test.is_large_string, test.is_date32)
    )


def _floor_us(value: int, kind: "pa.DataType") -> int:
    import pyarrow as pa

    return value * _DAY_US if pa.types.is_date32(kind) else value * _NANOSECONDS[kind.unit] // 1_000
