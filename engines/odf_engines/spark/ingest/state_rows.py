"""The projected state as a data frame."""

from pathlib import Path
from typing import Any

from pyspark.sql.functions import col

from odf_engines.ingest.columns import Columns
from odf_engines.ingest.state import open_state, state_indexes
from odf_engines.records.carriers import quoted, spark_name_of
from odf_engines.records.source_records import value_name
from odf_protocol.events import MergeStrategy


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
