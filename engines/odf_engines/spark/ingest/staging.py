"""Rows ready to be merged, as data frames: the new ones, typed, preprocessed, numbered and checked, and the state.

Staged rows have the columns `ord` (ascending in input order; the number of the record if there was no preprocess step)
and one per column, named by position (`v0`, …), in carrier types.

Where there are validators, staged rows are a file with what conditions in SQL say of them, and what is good is staged
again. Conditions see the columns by their names and pass the gate like any query. They are computed without ANSI's
errors: what cannot be computed is null, and so not true, and keeps one row away instead of all.

Source: ODF ingest, preprocess step; spec/ingest.md ING-7; VALID-2 and VALID-7 in ``spec/validation.md``.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import to_arrow_type

from odf_engines.contract import IngestRequest
from odf_engines.errors import InvalidQueryError, InvalidSourceError
from odf_engines.ingest.columns import ORD, Columns
from odf_engines.ingest.result import Folders
from odf_engines.ingest.state import open_state, state_indexes
from odf_engines.ingest.validated import Validated, validate_rows
from odf_engines.ingest_parts import PREDICATE, conditions_of
from odf_engines.records.carriers import carrier_of, quoted, slice_field_of, spark_name_of
from odf_engines.records.source_records import ERRORS, RECORD, value_name
from odf_engines.spark.gate.statement import invalid_query
from odf_engines.spark.ingest.preprocess import run_query
from odf_engines.spark.java_side import java_session
from odf_engines.stage_figures import IngestStage
from odf_engines.validation.validated_rows import verdict_name
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


_ROWS = "rows"
_KEPT = "\1kept"
_ANSI = "spark.sql.ansi.enabled"


def validate_staged(
    spark: Any, request: IngestRequest, staged: Any, columns: Columns, folders: Folders
) -> tuple[Validated, Any]:
    """Let the validators of a request look at staged rows.

    Returns:
        What they said, and the good rows, staged.

    Raises:
        InvalidSourceError: A validator cannot be applied to these columns, or failed on the batch as a whole.
    """
    path = folders.scratch / "to-validate"
    with folders.clock.measuring(IngestStage.VALIDATE):
        judged = _with_verdicts(spark, request, staged, columns)
        # In one file and in the order of the source, as validators are to see them.
        judged.coalesce(1).sortWithinPartitions(ORD).write.parquet(str(path))
    (file,) = path.glob("part-*.parquet")
    validated = validate_rows(request, folders, file, ORD, columns.schema)
    return validated, spark.read.schema(staged.schema).parquet(str(validated.path))


def _with_verdicts(spark: Any, request: IngestRequest, staged: Any, columns: Columns) -> Any:
    conditions = {verdict_name(index): sql for index, sql in conditions_of(request.validators).items()}
    if not conditions:
        return staged
    names = columns.schema.names
    values = [f"`{value_name(index)}` AS {quoted(name)}" for index, name in enumerate(names)]
    # All under one name that no column of a source has.
    kept = f"struct(`{ORD}`, {_listed(len(names))}) AS {quoted(_KEPT)}"
    staged.selectExpr(kept, *values).createOrReplaceTempView(_ROWS)
    try:
        spark.conf.set(_ANSI, "false")
        for sql in conditions.values():
            _check_condition(spark, sql)
        verdicts = [f"CAST((\n{sql}\n) AS BOOLEAN) AS {name}" for name, sql in conditions.items()]
        # Each was parsed as one expression, so the text says what it seems to say.
        query = f"SELECT {quoted(_KEPT)}.*, {', '.join(verdicts)} FROM {_ROWS}"  # noqa: S608
        judged = run_query(spark, query, {_ROWS})
    except InvalidQueryError as error:
        raise InvalidSourceError(request.source_name, f"validator {PREDICATE}: {error}") from error
    finally:
        spark.conf.set(_ANSI, "true")
    return judged


def _listed(count: int) -> str:
    return ", ".join(f"`{value_name(index)}`" for index in range(count))


def _check_condition(spark: Any, sql: str) -> None:
    """Refuse what is more, or less, than one expression.

    Raises:
        InvalidQueryError: It is.
    """
    try:
        java_session(spark).sessionState().sqlParser().parseExpression(sql)
    except PySparkException as error:
        raise invalid_query(error) from error
