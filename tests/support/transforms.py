"""Building transform requests over small changelogs, and reading what comes out."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import Limits, TransformInput, TransformRequest, TransformResponse, Watermark
from odf_protocol.events import (
    DataField,
    DataSchema,
    DataTypeFloat64,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    OffsetInterval,
    SqlQueryStep,
    TransformSql,
)
from odf_protocol.schema_arrow import arrow_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary, system_fields

SYSTEM_TIME = Timestamp.from_unix_ms(1_700_000_000_123)

# offset, op and event time come first in a row, then id, status and amount.
ORDERS = DataSchema(
    fields=(
        *system_fields(Vocabulary()),
        DataField(name="id", type=DataTypeInt64()),
        DataField(name="status", type=DataTypeOption(inner=DataTypeString())),
        DataField(name="amount", type=DataTypeOption(inner=DataTypeFloat64())),
    )
)


def transform_sql(*queries: str | tuple[str, str]) -> TransformSql:
    """A query, or steps ``(alias, query)`` before it."""
    steps = [
        SqlQueryStep(query=each) if isinstance(each, str) else SqlQueryStep(alias=each[0], query=each[1])
        for each in queries
    ]
    return TransformSql(engine="spark", queries=tuple(steps))


def write_orders(path: Path, rows: Sequence[tuple[Any, ...]], *, group_rows: int = 1_000_000) -> Path:
    """Write rows ``(offset, op, event time in ms, id, status, amount)`` as a slice, with so many in a row group."""
    schema = arrow_schema_of(ORDERS)
    instant = pa.timestamp("ms", "UTC")
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(6)]
    offset, op, event_time, order, status, amount = columns
    arrays = [
        pa.array(offset, pa.int64()),
        pa.array(op, pa.int32()),
        pa.array([0] * len(offset), pa.int64()).cast(instant),
        pa.array(event_time, pa.int64()).cast(instant),
        pa.array(order, pa.int64()),
        pa.array(status, pa.string()),
        pa.array(amount, pa.float64()),
    ]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, row_group_size=group_rows)
    return path


def orders_input(
    slices: Sequence[Path] = (), interval: tuple[int, int] | None = None, watermarks_ms: Iterable[int] = ()
) -> TransformInput:
    """The input ``orders``."""
    return TransformInput(
        dataset_id="did:odf:orders",
        alias="orders",
        vocabulary=Vocabulary(),
        schema=ORDERS,
        slices=tuple(slices),
        offset_interval=None if interval is None else OffsetInterval(start=interval[0], end=interval[1]),
        watermarks=tuple(
            Watermark(system_time=SYSTEM_TIME, event_time=Timestamp.from_unix_ms(each)) for each in watermarks_ms
        ),
    )


def transform_request(
    query: str | TransformSql,
    *inputs: TransformInput,
    next_offset: int = 0,
    prev_watermark_ms: int | None = None,
    vocabulary: Vocabulary | None = None,
    limits: Limits | None = None,
) -> TransformRequest:
    """A step over inputs, by default one without rows."""
    return TransformRequest(
        dataset_id="did:odf:derivative",
        transform=transform_sql(query) if isinstance(query, str) else query,
        vocabulary=vocabulary or Vocabulary(),
        inputs=inputs or (orders_input(),),
        system_time=SYSTEM_TIME,
        next_offset=next_offset,
        prev_watermark=None if prev_watermark_ms is None else Timestamp.from_unix_ms(prev_watermark_ms),
        limits=limits or Limits(),
    )


def output_rows(response: TransformResponse) -> list[tuple[Any, ...]]:
    """Operation and the query's columns of each row, without the other system columns and the event time."""
    if response.data_path is None:
        return []
    table = pq.read_table(response.data_path)
    return list(zip(*(table.column(i).to_pylist() for i in (1, *range(4, table.num_columns))), strict=True))
