"""Rows ready to be merged: typed, preprocessed, numbered in their order.

Staged rows have the columns `ord` (ascending in input order; the number of the record if there was no preprocess step)
and one per column, named by position (`v0`, …), in carrier types.

Source: ODF ingest, preprocess step and rules of the writer; spec/ingest.md ING-7.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from odf_engines.errors import EngineError
from odf_engines.spark.ingest.carriers import TIMESTAMP, carrier_of, slice_field_of, spark_name_of
from odf_engines.spark.ingest.source_records import ERRORS, RECORD, value_name
from odf_protocol.events import MergeStrategy, MergeStrategyChangelogStream, MergeStrategyUpsertStream
from odf_protocol.vocabulary import Vocabulary

ORD = "ord"


class InvalidColumnsError(EngineError):
    """Rows have columns that the dataset's rules forbid or lack columns that they ask for."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of staged rows are.

    Attributes:
        schema: Names, slice types and nullability, in input order; the event time is among them.
        event_time: Index of the event time.
        op: Index of the operation, None if rows have none.
        keys: Indexes of the primary key.
        has_event_time: The source gave the event time column; otherwise it is all null.
    """

    schema: pa.Schema
    event_time: int
    op: int | None
    keys: tuple[int, ...]
    has_event_time: bool

    @property
    def data(self) -> tuple[int, ...]:
        """Indexes of all columns but the operation: what a row of a changelog is about."""
        return tuple(i for i in range(len(self.schema)) if i != self.op)


def columns_of(found: pa.Schema, merge: MergeStrategy, vocabulary: Vocabulary, known: pa.Schema | None) -> Columns:
    """Check the columns of rows to be merged, and add an event time if there is none.

    Raises:
        InvalidColumnsError: A reserved name, an event time that is no time, or a missing key column.
    """
    takes_op = isinstance(merge, MergeStrategyChangelogStream | MergeStrategyUpsertStream)
    reserved = {vocabulary.offset, vocabulary.system_time} | (set() if takes_op else {vocabulary.op})
    if taken := [name for name in found.names if name in reserved]:
        raise InvalidColumnsError(
            f"column {taken[0]} has a name that is reserved for a system column; rename it in a preprocess step"
        )
    if len(set(found.names)) != len(found.names):
        raise InvalidColumnsError(f"two columns have the same name: {', '.join(found.names)}")
    schema, event_time = found, found.get_field_index(vocabulary.event_time)
    has_event_time = event_time >= 0
    if has_event_time:
        kind = found.field(event_time).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
            raise InvalidColumnsError(
                f"column {vocabulary.event_time}: expected a date or a timestamp, found {kind};"
                " cast it in a preprocess step"
            )
    else:
        kind = known.field(vocabulary.event_time).type if known is not None else TIMESTAMP
        schema, event_time = found.append(pa.field(vocabulary.event_time, kind)), len(found)
    keys = _indexes_of(getattr(merge, "primary_key", ()), schema, "primary key")
    _indexes_of(getattr(merge, "compare_columns", None) or (), schema, "compare")
    op = schema.get_field_index(vocabulary.op)
    if isinstance(merge, MergeStrategyChangelogStream) and op < 0:
        raise InvalidColumnsError(f"a changelog needs the column {vocabulary.op} with the operation of each row")
    if op >= 0 and not pa.types.is_integer(schema.field(op).type):
        raise InvalidColumnsError(f"column {vocabulary.op}: expected a whole number, found {schema.field(op).type}")
    return Columns(schema, event_time, op if op >= 0 else None, keys, has_event_time)


def stage_converted(converted: Any, columns: Columns) -> Any:
    """Take good rows as they were converted: a data frame of staged rows."""
    values = [_staged(i, columns, f"`{value_name(i)}`") for i in range(len(columns.schema))]
    return converted.where(f"{ERRORS} IS NULL").selectExpr(f"{RECORD} AS {ORD}", *values)


def stage_preprocessed(result: Any, columns: Columns) -> Any:
    """Number the rows of a query's result in their order: a data frame of staged rows, which must be computed once."""
    frame = result.toDF(*[value_name(i) for i in range(len(result.columns))])
    values = [_staged(i, columns, f"`{value_name(i)}`") for i in range(len(columns.schema))]
    return frame.selectExpr(f"monotonically_increasing_id() AS {ORD}", *values)


def schema_of_query(result: Any, known: pa.Schema | None) -> pa.Schema:
    """Give the columns of a query's result slice types; those that the dataset has decide where Spark's are wider.

    Raises:
        UnsupportedError: A type that no slice can hold.
    """
    from pyspark.sql.pandas.types import to_arrow_type

    fields = []
    for column in result.schema.fields:
        field = slice_field_of(pa.field(column.name, to_arrow_type(column.dataType, timezone="UTC"), column.nullable))
        index = -1 if known is None else known.get_field_index(column.name)
        if known is not None and index >= 0 and carrier_of(known.field(index).type) == field.type:
            field = field.with_type(known.field(index).type)
        fields.append(field)
    return pa.schema(fields)


def _staged(index: int, columns: Columns, value: str) -> str:
    field = columns.schema.field(index)
    name = spark_name_of(carrier_of(field.type))
    if index == columns.event_time and not columns.has_event_time:
        value = f"CAST(NULL AS {name})"
    elif pa.types.is_timestamp(field.type):
        value = f"date_trunc('MILLISECOND', CAST({value} AS TIMESTAMP))"
    return f"{value} AS `{value_name(index)}`"


def _indexes_of(names: tuple[str, ...], schema: pa.Schema, role: str) -> tuple[int, ...]:
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise InvalidColumnsError(
            f"{role} column {missing[0]} is not among the columns of the rows: {', '.join(schema.names)}"
        )
    return tuple(schema.get_field_index(name) for name in names)
