"""The event times of the rows in a file, from the values that stand there: what its footer says decides nothing.

Source: WINDOW-10 in ``spec/extensions/event-windows.md``, ENGINE-28 in ``spec/extensions/engine-contract.md``.
"""

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


def _floor_us(value: int, kind: "pa.DataType") -> int:
    import pyarrow as pa

    return value * _DAY_US if pa.types.is_date32(kind) else value * _NANOSECONDS[kind.unit] // 1_000
