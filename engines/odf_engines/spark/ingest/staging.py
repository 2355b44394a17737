"""Rows ready to be merged, as data frames: the new ones, typed, preprocessed and numbered, and the projected state.

Staged rows have the columns `ord` (ascending in input order; the number of the record if there was no preprocess step)
and one per column, named by position (`v0`, …), in carrier types.

Source: ODF ingest, preprocess step; spec/ingest.md ING-7.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import to_arrow_type

from odf_engines.ingest.columns import ORD, Columns
from odf_engines.ingest.state import open_state, state_indexes
from odf_engines.records.carriers import carrier_of, quoted, slice_field_of, spark_name_of
from odf_engines.records.source_records import ERRORS, RECORD, value_name
from odf_protocol.events import MergeStrategy


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


def load_state(spark: Any, path: Path, merge: MergeStrategy, columns: Columns, next_offset: int) -> Any:
    """Read a state file as a data frame of value columns.

    Raises:
        EngineFailureError: It belongs to another strategy, key or offset, or lacks a column.
    """
    indexes = state_indexes(merge, columns)
    names = [columns.schema.field(i).name for i in indexes]
    known = open_state(path, merge, names, next_offset)
    types = ", ".join(f"{quoted(name)} {spark_name_of(known.field(name).type)}" for name in names)
    rows = spark.read.schema(types).parquet(str(path))
    return rows.select(*[col(quoted(name)).alias(value_name(i)) for name, i in zip(names, indexes, strict=True)])
