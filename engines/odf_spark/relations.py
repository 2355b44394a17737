"""Inputs as relations of Spark: the rows of some slices, in order, in one partition.

Source: clause ENGINE-11; MAP-2 in ``spec/extensions/changelog-maps.md``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from odf_engines.errors import InvalidQueryError
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import DataSchema, DataTypeOption, OffsetInterval
from odf_protocol.schema_spark import quote_spark_name, spark_columns_of
from odf_protocol.vocabulary import Vocabulary
from odf_spark.java_side import (
    analysed_plan,
    java_class,
    java_session,
    rows_of,
    rows_of_plan,
    scala_object,
    scala_sequence,
)

MAX_SCANS = 64  # guess: every scan of its own makes planning slower; beyond, one scan and a sort are cheaper

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"


def struct_of(schema: DataSchema, *, alias: str) -> Any:
    """Return the columns of an input as Spark names them, a ``StructType`` of Java's.

    Raises:
        InvalidQueryError: Spark cannot hold a column's type.
    """
    try:
        columns = spark_columns_of(schema)
    except UnsupportedError as error:
        raise InvalidQueryError(f"input {alias}: {error}") from error
    return java_class("org.apache.spark.sql.types.StructType").fromDDL(columns)


def stated_columns(schema: DataSchema, struct: Any) -> list[Any]:
    """Return the columns of an input as expressions over those of its files, each under a number of its own.

    Spark takes every column of a file for nullable; stating a value that is never used says that it is not.
    """
    numbers = scala_object(f"{_EXPRESSIONS}.NamedExpression$")
    nothing, none = scala_sequence([]), java_class("scala.Option").empty()
    columns = []
    for position, field in enumerate(schema.fields):
        found = java_class("org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute")(scala_sequence([field.name]))
        if not isinstance(field.type, DataTypeOption):
            some_value = java_class(f"{_EXPRESSIONS}.Literal").default(struct.apply(position).dataType())
            found = java_class(f"{_EXPRESSIONS}.Coalesce")(scala_sequence([found, some_value]))
        alias = java_class(f"{_EXPRESSIONS}.Alias")
        columns.append(alias(found, field.name, numbers.newExprId(), nothing, none, nothing))
    return columns


def empty_rows(spark: SparkSession, struct: Any) -> DataFrame:
    """Return no rows as if from files, for analysing a query before, or without, reading data."""
    no_rows = java_class("java.util.ArrayList")()
    return rows_of(spark, java_session(spark).createDataFrame(no_rows, struct.asNullable()))


def list_columns(spark: SparkSession, rows: DataFrame, columns: Sequence[Any]) -> DataFrame:
    """Return the rows of files with ``stated_columns``."""
    project = java_class("org.apache.spark.sql.catalyst.plans.logical.Project")
    return rows_of_plan(spark, project(scala_sequence(columns), analysed_plan(rows)))


def ordered_rows(
    spark: SparkSession,
    struct: Any,
    slices: Sequence[Path],
    interval: OffsetInterval,
    vocabulary: Vocabulary,
    *,
    in_one_partition: bool = True,
) -> DataFrame:
    """Return the rows of an interval of offsets, by offset; every column of a file counts as nullable.

    Args:
        spark: Session.
        struct: Columns of the slices.
        slices: Parquet files, oldest first, each with its rows by offset.
        interval: Offsets to read.
        vocabulary: Names of the system columns.
        in_one_partition: Otherwise up to ``MAX_SCANS`` slices are read in several, whose order is that of the rows.
    """
    reader = java_session(spark).read().schema(struct)  # pyspark would send the columns again
    offset = quote_spark_name(vocabulary.offset)
    # Spark reads the largest files first, so each file is a scan of its own, or all are sorted.
    if len(slices) <= MAX_SCANS:
        frames = [rows_of(spark, reader.parquet(str(path))) for path in slices]
        rows = one_after_another(frames, in_one_partition=in_one_partition)
    else:
        rows = rows_of(spark, reader.parquet(scala_sequence(map(str, slices)))).coalesce(1)
        rows = rows.sortWithinPartitions(offset)
    # As text it is one question to Java, as an expression a dozen.
    return rows.where(f"{offset} >= {interval.start}L AND {offset} <= {interval.end}L")


def one_after_another(frames: Sequence[DataFrame], *, in_one_partition: bool = True) -> DataFrame:
    """Return the rows of all frames: those of the first, then those of the second, and so on.

    Args:
        frames: With the same columns.
        in_one_partition: Make one ordered partition of them; else partitions stand in their order.
    """
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    return rows.coalesce(1) if in_one_partition else rows


def register(rows: DataFrame, alias: str) -> None:
    """Make rows known to queries under a name, which may have dots."""
    rows.createOrReplaceTempView(quote_spark_name(alias))
