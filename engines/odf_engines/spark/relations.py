"""Inputs as relations of Spark: the rows of some slices, in order, in one partition.

Source: clause ENGINE-11; MAP-2 in ``spec/extensions/changelog-maps.md``.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odf_engines.errors import InvalidQueryError
from odf_engines.spark.java_classes import java_class
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import DataSchema, DataTypeOption, OffsetInterval
from odf_protocol.schema_spark import quote_spark_name, spark_columns_of
from odf_protocol.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["MOST_SCANS", "empty_rows", "one_after_another", "ordered_rows", "register"]

MOST_SCANS = 64  # guess: every scan of its own makes planning slower; beyond, one scan and a sort are cheaper


def empty_rows(spark: "SparkSession", schema: DataSchema, *, alias: str) -> "DataFrame":
    """Return no rows of a schema, for analysing a query before, or without, reading data.

    Raises:
        InvalidQueryError: Spark cannot hold a column's type.
    """
    try:
        columns = spark_columns_of(schema)
    except UnsupportedError as error:
        raise InvalidQueryError(f"input {alias}: {error}") from error
    struct = java_class("org.apache.spark.sql.types.StructType").fromDDL(columns)
    no_rows = java_class("java.util.ArrayList")()
    return _frame(spark, spark._jsparkSession.createDataFrame(no_rows, struct))  # noqa: SLF001


def ordered_rows(
    spark: "SparkSession",
    schema: DataSchema,
    slices: Sequence[Path],
    interval: OffsetInterval,
    vocabulary: Vocabulary,
    *,
    alias: str,
    in_one_partition: bool = True,
) -> "DataFrame":
    """Return the rows of an interval of offsets, by offset.

    Args:
        spark: Session.
        schema: Of the slices.
        slices: Parquet files, oldest first, each with its rows by offset.
        interval: Offsets to read.
        vocabulary: Names of the system columns.
        alias: For messages.
        in_one_partition: Otherwise up to ``MOST_SCANS`` slices are read in several, whose order is that of the rows.

    Raises:
        InvalidQueryError: Spark cannot hold a column's type.
    """
    from pyspark.sql import functions as f

    struct = empty_rows(spark, schema, alias=alias).schema
    offset = f.col(quote_spark_name(vocabulary.offset))
    reader = spark.read.schema(struct)
    # Spark reads the largest files first, so each file is a scan of its own, or all are sorted.
    if len(slices) <= MOST_SCANS:
        frames = [reader.parquet(str(path)) for path in slices]
        rows = one_after_another(frames, in_one_partition=in_one_partition)
    else:
        rows = reader.parquet(*map(str, slices)).coalesce(1).sortWithinPartitions(offset)
    rows = rows.where(offset.between(interval.start, interval.end))
    # Spark takes every column of a file for nullable; stating a value that is never used says that it is not.
    names = [f.col(quote_spark_name(field.name)) for field in schema.fields]
    required = [not isinstance(field.type, DataTypeOption) for field in schema.fields]
    return rows.select(
        *(
            f.coalesce(name, _some_value(column.dataType.json())).alias(column.name) if is_required else name
            for name, is_required, column in zip(names, required, struct.fields, strict=True)
        )
    )


def one_after_another(frames: "Sequence[DataFrame]", *, in_one_partition: bool = True) -> "DataFrame":
    """Return the rows of all frames: those of the first, then those of the second, and so on.

    Args:
        frames: With the same columns.
        in_one_partition: Make one ordered partition of them; else partitions stand in their order.
    """
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    return rows.coalesce(1) if in_one_partition else rows


def register(rows: "DataFrame", alias: str) -> None:
    """Make rows known to queries under a name, which may have dots."""
    rows.createOrReplaceTempView(quote_spark_name(alias))


@cache
def _some_value(kind: str) -> "Column":
    """Return a constant of a type, given as JSON; asked for every column, and few types occur."""
    from pyspark.sql.classic.column import Column

    java_kind = java_class("org.apache.spark.sql.types.DataType").fromJson(kind)
    literal = java_class("org.apache.spark.sql.catalyst.expressions.Literal").default(java_kind)
    return Column(java_class("org.apache.spark.sql.classic.ExpressionUtils").column(literal))


def _frame(spark: "SparkSession", dataset: Any) -> "DataFrame":
    from pyspark.sql.classic.dataframe import DataFrame

    return DataFrame(dataset, spark)
