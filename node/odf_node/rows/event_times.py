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
_TAKING: Final = ("1", "2")  # Source: RFC-015, operations retract and correct-from, as texts
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


def read_times_beside(path: Path, column: str, beside: Sequence[str]) -> "pa.Table | None":
    """Return the event time of each row of a file, in microseconds, and what tells its row from others.

    Args:
        path: A file that this node wrote.
        column: Of event times.
        beside: Other columns. Values that are equal are equal texts; columns of a type that says it in another way are
            left out.

    Returns:
        The other columns as texts, numbered from 0, and ``time``; None where one is missing, or finer than this.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        there = file.schema_arrow.names
        rows = file.read(columns=[each for each in (column, *beside) if each in there])
    micros = _micros(rows.column(column)) if column in there else None
    if micros is None or micros.null_count:
        return None
    found = {}
    for place, name in enumerate(beside):
        if name not in there:  # the schema got it later
            found[f"{place}"] = pa.nulls(len(micros), pa.large_string())
        elif _is_told_by_text(rows.column(name).type):
            found[f"{place}"] = rows.column(name).cast(pa.large_string())
    return pa.table({**found, "time": micros})


def find_newest(rows: "pa.Table") -> "pa.Table":
    """Of versions keep, for each key, the newest one that is given, and all that are taken.

    Args:
        rows: From ``read_times_beside``: the columns of a key, the operation, the times.

    Returns:
        The columns of the key, ``is_taken``, ``time``.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    *key, op, _time = rows.column_names
    is_taken = pc.is_in(rows.column(op), pa.array(_TAKING, pa.large_string()))
    rows = rows.drop_columns([op]).append_column("is_taken", is_taken)
    given = rows.filter(pc.invert(is_taken)).group_by(["is_taken", *key], use_threads=False)
    newest = given.aggregate([("time", "max")]).rename_columns({"time_max": "time"})
    taken = rows.filter(is_taken)
    return pa.concat_tables([each.select([*key, "is_taken", "time"]) for each in (newest, taken)])


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
