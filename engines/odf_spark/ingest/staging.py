"""Rows ready to be merged, as data frames: the new ones, typed and checked, and the state.

Staged rows have the columns `ord` (the number of the record) and one per column, named by position (`v0`, …), in
carrier types.

Source: spec/ingest.md ING-7, ING-12.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.functions import col

from odf_engines.ingest.columns import ORD, Columns
from odf_engines.ingest.state import open_state, state_indexes
from odf_engines.records.carriers import carrier_of, quoted, spark_name_of
from odf_engines.records.source_records import RECORD, value_name
from odf_protocol.events import MergeStrategy


def stage_records(spark: Any, records: Path, columns: Columns) -> Any:
    """Take a file of converted records: a data frame of staged rows."""
    known = set(pq.read_schema(records).names)
    fields = [(value_name(place), carrier_of(field.type)) for place, field in enumerate(columns.schema)]
    # A stated schema saves Spark a job that would look for it in the file.
    types = ", ".join(f"{name} {spark_name_of(kind)}" for name, kind in fields if name in known)
    rows = spark.read.schema(f"{RECORD} BIGINT, {types}").parquet(str(records))
    values = [_staged(index, columns, has_values=name in known) for index, (name, _) in enumerate(fields)]
    return rows.selectExpr(f"{RECORD} AS {ORD}", *values)


def _staged(index: int, columns: Columns, *, has_values: bool) -> str:
    field = columns.schema.field(index)
    value = f"`{value_name(index)}`"
    if not has_values:
        value = f"CAST(NULL AS {spark_name_of(carrier_of(field.type))})"
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
