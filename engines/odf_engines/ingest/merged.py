"""What a merge of converted records gives, and the one that takes no engine: appending without a query.

Appended rows are ordered by event time, those without one by what they get, and equal ones as the source has them.
Records that come in this order, as most logs do, are passed on as they are read; of others, those that fit are ordered
in memory, and more of them in parts on disk, where the caller has a way to do so.

Source: spec/ingest.md ING-8 to ING-12.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_engines.ingest.columns import APPEND, OP, Columns
from odf_engines.ingest.quarantined_rows import BadRows
from odf_engines.ingest.slice_writer import fill_event_time
from odf_engines.ingest.unread_keys import NO_KEYS, UnreadKeys
from odf_engines.records.carriers import carrier_of
from odf_engines.records.source_records import RECORD, ROW_GROUP_ROWS, value_name
from odf_protocol.timestamp import Timestamp

_MAX_BYTES = 256 * 1024 * 1024  # guess: of rows in memory, which ordering holds twice

Order = Callable[[Path, tuple[str, ...], Mapping[str, pa.Scalar]], Iterator[pa.RecordBatch]]
"""Gives the rows of a file by columns, ascending, with values that stand for nulls of some; no two rows are alike."""


def iter_appended(
    records: Path, columns: Columns, fallback: Timestamp, order: Order | None = None
) -> Iterator[pa.RecordBatch]:
    """Give the changes of an append: batches of the operation and the values, in their order.

    Args:
        records: Parquet file of converted records, by number.
        columns: Of the rows.
        fallback: Event time of rows that have none.
        order: Orders what memory cannot hold; None: memory holds whatever there is.
    """
    if not columns.has_event_time or _is_ordered(records, value_name(columns.event_time), fallback):
        return iter_appends(_iter_batches(records), columns)
    time = value_name(columns.event_time)
    with pq.ParquetFile(records) as file:
        groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
        fits = sum(group.total_byte_size for group in groups) <= _MAX_BYTES
    if fits or order is None:
        return iter_appends(_order_in_memory(records, time, fallback), columns)
    return iter_appends(order(records, (time, RECORD), {time: find_stand_in(records, time, fallback)}), columns)


def find_stand_in(records: Path, time: str, fallback: Timestamp) -> pa.Scalar:
    """Give the event time of rows that have none, in the type that a file has it."""
    kind = pq.read_schema(records).field(time).type
    return fill_event_time(pa.nulls(1, kind), kind, fallback)[0]


def _is_ordered(records: Path, name: str, fallback: Timestamp) -> bool:
    """Say whether a column of days or times ascends, without reading more of it than tells."""
    last: int | None = None
    for batch in _iter_batches(records, [name]):
        times = _numbers(batch.column(0), fallback)
        if not len(times):
            continue
        falls = pc.less(times.slice(1), times.slice(0, len(times) - 1))
        if (last is not None and times[0].as_py() < last) or pc.any(falls).as_py():
            return False
        last = times[-1].as_py()
    return True


def _numbers(times: pa.Array, fallback: Timestamp) -> pa.Array:
    whole = pa.int32() if pa.types.is_date32(times.type) else pa.int64()
    return fill_event_time(times, times.type, fallback).cast(whole)


def _order_in_memory(records: Path, time: str, fallback: Timestamp) -> Iterator[pa.RecordBatch]:
    rows = pq.read_table(records).combine_chunks()
    numbers = pa.table({time: pa.chunked_array([_numbers(each, fallback) for each in rows.column(time).chunks])})
    # Equal ones stay as they are.
    order = pc.sort_indices(numbers, sort_keys=[(time, "ascending")])
    # Some at a time, while another thread writes those before.
    for first in range(0, len(order), ROW_GROUP_ROWS):
        yield from rows.take(order.slice(first, ROW_GROUP_ROWS)).to_batches()


def _iter_batches(records: Path, names: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(records) as file:
        yield from file.iter_batches(batch_size=ROW_GROUP_ROWS, columns=names)


def iter_appends(batches: Iterable[pa.RecordBatch], columns: Columns) -> Iterator[pa.RecordBatch]:
    """Give rows in their order as changes: the operation and the values, without an event time where there is none."""
    names = [value_name(i) for i in columns.data]
    for batch in batches:
        known = set(batch.schema.names)
        operations = pa.repeat(pa.scalar(APPEND, pa.int32()), batch.num_rows)
        values = [
            batch.column(name)
            if name in known
            else pa.nulls(batch.num_rows, carrier_of(columns.schema.field(columns.event_time).type))
            for name in names
        ]
        yield pa.record_batch([operations, *values], names=[OP, *names])


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge that is computed as its parts are read, in this order.

    Attributes:
        changes: Batches of the operation and the values, in the order of offsets.
        rejected: Rows that were left out, each by number.
        state: Batches of the values of the new state, sorted by key; None where the strategy keeps none.
        count_kept: Counts the current rows that are not retracted although the batch lacks them (ING-48), once the
            changes were read.
    """

    changes: Iterator[pa.RecordBatch]
    refused: Sequence[BadRows] = ()
    state: Iterator[pa.RecordBatch] | None = None
    count_kept: Callable[[], int] = int


Merge = Callable[[IngestRequest, Path, Columns, UnreadKeys], Merged]
"""Merges a file of converted records, by number, with the state of a request."""


def append_in_memory(request: IngestRequest, records: Path, columns: Columns, _unread: UnreadKeys = NO_KEYS) -> Merged:
    """Append records, which are ordered in memory however many they are."""
    return Merged(iter_appended(records, columns, request.fallback_event_time))
