"""Write merged rows as a data slice: system columns in front, types of the schema, offsets in order.

Source: ODF "Data Slices", "Merge"; spec/ingest.md ING-13.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.host.slices import open_slice_file
from odf_engines.ingest.columns import OP, Columns, InvalidColumnsError
from odf_engines.records.ahead import iter_ahead
from odf_engines.records.carriers import TIMESTAMP, carrier_of, from_carrier, one_array
from odf_engines.records.source_records import ROW_GROUP_ROWS, value_name
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class WrittenSlice:
    """What was written.

    Attributes:
        row_count: Rows; without rows there is no file.
        newest_event_time: The latest of them; a day counts from its midnight in UTC.
    """

    row_count: int
    newest_event_time: Timestamp | None


def slice_schema_of(columns: Columns, vocabulary: Vocabulary, *, op_is_nullable: bool) -> pa.Schema:
    """Give the schema of a slice: system columns, then data columns in the order of the input."""
    event_time = columns.schema.field(columns.event_time)
    fields = [
        pa.field(vocabulary.offset, pa.int64(), nullable=False),
        pa.field(vocabulary.op, pa.int32(), nullable=op_is_nullable),
        pa.field(vocabulary.system_time, TIMESTAMP, nullable=False),
        event_time.with_nullable(False),
    ]
    return pa.schema(fields + [columns.schema.field(i) for i in columns.data if i != columns.event_time])


def check_compatible(found: pa.Schema, known: pa.Schema) -> pa.Schema:
    """Give the schema of the dataset if new rows fit it.

    A column of the dataset that is required may come as nullable: what counts is that no null is in it.

    Raises:
        InvalidColumnsError: Other names, another order or other types.

    Source: ODF rules for schemas of data slices.
    """
    if found.names != known.names:
        missing = [name for name in known.names if name not in found.names]
        added = [name for name in found.names if name not in known.names]
        faults = [f"missing: {', '.join(missing)}"] if missing else []
        faults += [f"new: {', '.join(added)}"] if added else []
        raise InvalidColumnsError(
            f"columns differ from the dataset's ({'; '.join(faults) or 'another order'}); expected"
            f" {', '.join(known.names)}, found {', '.join(found.names)}"
        )
    for have, want in zip(found, known, strict=True):
        if have.type != want.type:
            raise InvalidColumnsError(f"column {want.name}: expected {want.type} as in the dataset, found {have.type}")
    return known


def write_slice(
    changes: Iterable[pa.RecordBatch],
    target: Path,
    columns: Columns,
    schema: pa.Schema,
    *,
    system_time: Timestamp,
    fallback_event_time: Timestamp,
    next_offset: int,
) -> WrittenSlice:
    """Write changes, in the order of their offsets, to the Parquet file `target`; no file if there are none.

    The bytes depend on the rows only, not on how they are batched.

    Raises:
        InvalidColumnsError: A value does not fit the schema, such as a null in a required column.
    """
    newest: int | None = None
    count = 0
    writer: pq.ParquetWriter | None = None
    try:
        for table in iter_ahead(iter_groups(changes)):
            rows = _slice_rows(table, columns, schema, system_time, fallback_event_time, next_offset + count)
            writer = writer or open_slice_file(target, schema)
            writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
            latest = pc.max(rows.column(3).cast(pa.timestamp("ms", "UTC")).cast(pa.int64())).as_py()
            newest = latest if newest is None else max(newest, latest)
            count += rows.num_rows
    finally:
        if writer is not None:
            writer.close()
    return WrittenSlice(count, None if newest is None else Timestamp.from_unix_ms(newest))


def _slice_rows(
    table: pa.Table,
    columns: Columns,
    schema: pa.Schema,
    system_time: Timestamp,
    fallback_event_time: Timestamp,
    first_offset: int,
) -> pa.Table:
    count = table.num_rows
    offsets = pa.array(np.arange(first_offset, first_offset + count, dtype=np.int64))
    times = pa.repeat(pa.scalar(system_time.unix_ms, pa.int64()), count).cast(TIMESTAMP)
    arrays = [offsets, plain_column(table, OP, pa.int32()), times]
    for index in (columns.event_time, *(i for i in columns.data if i != columns.event_time)):
        field = schema.field(len(arrays))
        value = plain_column(table, value_name(index), carrier_of(field.type))
        if index == columns.event_time:
            value = fill_event_time(value, field.type, fallback_event_time)
        try:
            value = from_carrier(value, field.type)
            value.validate(full=True)  # ROWS-8: what a query makes of bytes need not be text
        except pa.ArrowInvalid as error:
            raise InvalidColumnsError(f"column {field.name}: a value does not fit {field.type}: {error}") from error
        if not field.nullable and value.null_count:
            raise InvalidColumnsError(
                f"column {field.name}: the dataset requires a value, as its schema stays that of its first rows; "
                "found null (where the read step requires one, too, such rows alone go to quarantine)"
            )
        arrays.append(value)
    return pa.table(arrays, schema=schema)


def plain_column(table: pa.Table, name: str, carrier: pa.DataType) -> pa.Array:
    """Take one column as Spark wrote it, in its carrier type: lists come with another name for their items."""
    return from_carrier(one_array(table.column(name)), carrier)


def fill_event_time(value: pa.Array, kind: pa.DataType, fallback: Timestamp) -> pa.Array:
    """Give rows without an event time the fallback; for a column of days, its day."""
    if not value.null_count:
        return value
    if pa.types.is_date32(kind):
        day = dt.date(1970, 1, 1) + dt.timedelta(days=fallback.seconds // _DAY_S)
        return value.fill_null(pa.scalar(day, kind))
    return value.fill_null(pa.scalar(fallback.unix_ms, pa.int64()).cast(kind))


def iter_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Cut batches anew so that every table but the last has the same number of rows, however they came."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        rest = batch
        while count + rest.num_rows >= ROW_GROUP_ROWS:
            take = ROW_GROUP_ROWS - count
            yield pa.Table.from_batches([*held, rest.slice(0, take)])
            held, count, rest = [], 0, rest.slice(take)
        if rest.num_rows:
            held.append(rest)
            count += rest.num_rows
    if held:
        yield pa.Table.from_batches(held)
