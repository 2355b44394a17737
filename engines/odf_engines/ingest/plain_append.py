"""Appending converted records without a query: their order is all that is to be found.

Appended rows are ordered by event time, those without one first, and equal ones as the source has them. That takes no
engine: records that come in this order, as most logs do, are passed on as they are read, and others are ordered in
memory where they fit.

Source: ODF merge strategy "append"; spec/ingest.md ING-8.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.ingest.carriers import carrier_of
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.outcome import APPEND, OP
from odf_engines.ingest.source_records import ROW_GROUP_ROWS, value_name

__all__ = ["iter_appended"]

_MOST_BYTES = 256 * 1024 * 1024  # guess: of rows in memory, which ordering holds twice


def iter_appended(records: Path, columns: Columns) -> Iterator[pa.RecordBatch] | None:
    """Give the changes of an append: batches of the operation and the values, in their order.

    Args:
        records: Parquet file of converted records, by number.
        columns: Of the rows.

    Returns:
        None where they are not in order and too large to be ordered in memory.
    """
    order = _find_order(records, columns)
    if order is None:
        return _iter_rows(records, columns)
    with pq.ParquetFile(records) as file:
        groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
        if sum(group.total_byte_size for group in groups) > _MOST_BYTES:
            return None
    rows = pa.Table.from_batches(_iter_rows(records, columns)).take(order)
    batches: list[pa.RecordBatch] = rows.to_batches(max_chunksize=ROW_GROUP_ROWS)
    return iter(batches)


def _find_order(records: Path, columns: Columns) -> pa.Array | None:
    """Find the order of the rows, None where they come in it."""
    if not columns.has_event_time:
        return None
    times = pq.read_table(records, columns=[value_name(columns.event_time)]).column(0)
    numbers = times.cast(pa.int32() if pa.types.is_date32(times.type) else pa.int64())
    if not numbers.null_count:
        values = np.asarray(numbers)
        if not np.any(values[1:] < values[:-1]):
            return None
    order: pa.Array = pc.sort_indices(numbers, null_placement="at_start")  # equal ones stay as they are
    return order


def _iter_rows(records: Path, columns: Columns) -> Iterator[pa.RecordBatch]:
    names = [value_name(i) for i in columns.data]
    with pq.ParquetFile(records) as file:
        known = set(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS):
            operations = pa.repeat(pa.scalar(APPEND, pa.int32()), batch.num_rows)
            values = [
                batch.column(name)
                if name in known
                else pa.nulls(batch.num_rows, carrier_of(columns.schema.field(columns.event_time).type))
                for name in names
            ]
            yield pa.record_batch([operations, *values], names=[OP, *names])
