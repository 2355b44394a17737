"""The operation ``preprocess``: the queries of an ingest over its converted rows, the table ``input``.

Source: ODF "preprocess"; spec/ingest.md ING-7.
"""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type

from odf_engines.errors import EngineMissingError, InvalidQueryError
from odf_engines.host.arrow_texts import schema_text
from odf_engines.ingest.slice_writer import iter_groups
from odf_engines.records.carriers import (
    carrier_of,
    from_carrier,
    one_array,
    quoted,
    slice_field_of,
    spark_name_of,
    to_carrier,
)
from odf_engines.records.source_records import RECORD, ROW_GROUP_ROWS, value_name
from odf_protocol.errors import UnsupportedError
from odf_protocol.events import SqlQueryStep, TransformSql
from odf_spark.fixed_order import depends_on_order, in_canonical_order, in_one_order, unspilled
from odf_spark.gate.statement import analyse_query, check_analysed, invalid_query, parse_query
from odf_spark.handover import handover_for
from odf_spark.java_side import rows_of
from odf_spark.session_settings import set_for_rows

INPUT: Final = "input"

_ENGINE: Final = "spark"
_RESULT: Final = "result.parquet"


def run(spark: Any, request: dict[str, Any], folder: Path) -> dict[str, object]:
    """Run the queries over the rows of a file; see ``host.worker`` for what goes in and out.

    Raises:
        InvalidQueryError: One is no query over ``input`` and the steps before it, or fails on a value; or the result
            has a type that no slice can hold.
        EngineMissingError: They are written for another engine.
    """
    transform, given = request["transform"], Path(request["rows"])
    work = folder / "work"
    work.mkdir()
    try:
        with set_for_rows(spark, given.stat().st_size), in_one_order(spark):
            rows = _numbered(spark, given, work / "rows.parquet")
            answer, matters = _run_queries(spark, transform, rows, pq.read_schema(given))
            schema = _schema_of(answer)
            with unspilled(spark, matters=matters):
                named = answer.toDF(*(value_name(place) for place in range(len(schema))))
                batches = handover_for(work, [given]).iter_batches(named, "result")
                count = _write(batches, schema, folder / _RESULT)
    except PySparkException as error:
        raise invalid_query(error) from error
    except UnsupportedError as error:
        raise InvalidQueryError(str(error)) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {"result": _RESULT, "rows": count, "schema": schema_text(schema)}


def _numbered(spark: Any, given: Path, target: Path) -> Any:
    """Give rows in types that Spark has, with their numbers."""
    with pq.ParquetFile(given) as file:
        fields = [pa.field(value_name(place), carrier_of(field.type)) for place, field in enumerate(file.schema_arrow)]
        schema = pa.schema([pa.field(RECORD, pa.int64()), *fields])
        first = 0
        with pq.ParquetWriter(target, schema, compression="lz4", write_statistics=False) as writer:
            for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS):
                numbers = pa.array(np.arange(first, first + batch.num_rows), pa.int64())
                types = file.schema_arrow.types
                values = [to_carrier(column, kind) for column, kind in zip(batch.columns, types, strict=True)]
                writer.write_batch(pa.record_batch([numbers, *values], schema=schema))
                first += batch.num_rows
    types = ", ".join(f"{field.name} {spark_name_of(field.type)}" for field in schema)
    return spark.read.schema(types).parquet(str(target))


def _schema_of(result: Any) -> pa.Schema:
    """Return the columns of a query's result, in types of slices.

    Raises:
        UnsupportedError: One has a type that no slice can hold.
    """
    fields = result.schema.fields
    return pa.schema(
        [
            slice_field_of(pa.field(each.name, to_arrow_type(each.dataType, timezone="UTC"), each.nullable))
            for each in fields
        ]
    )


def _write(batches: Any, schema: pa.Schema, target: Path) -> int:
    count = 0
    with pq.ParquetWriter(target, schema, compression="lz4") as writer:
        for table in iter_groups(batches):
            arrays = [
                from_carrier(to_carrier(one_array(table.column(place)), field.type), field.type)
                for place, field in enumerate(schema)
            ]
            writer.write_table(pa.table(arrays, schema=schema))
            count += table.num_rows
    return count


def _run_queries(spark: Any, transform: TransformSql, given: Any, target: pa.Schema) -> tuple[Any, bool]:
    """Run queries over rows; give the last one's data frame.

    The rows are one ordered partition, so that a query that only selects and filters keeps their order; those of other
    queries get one. To be called, and computed, in one partition.

    Returns:
        The data frame, and whether it is right only if nothing is spilled.
    """
    if transform.engine.lower() != _ENGINE:
        raise EngineMissingError(transform.engine, (_ENGINE,), purpose="preprocess")
    rows = given.coalesce(1).sortWithinPartitions(RECORD)
    values = [f"{_value(i, field)} AS {quoted(field.name)}" for i, field in enumerate(target)]
    rows.selectExpr(*values).createOrReplaceTempView(INPUT)
    known, result = {INPUT}, None
    steps = transform.queries or (SqlQueryStep(query=transform.query or ""),)
    for step in steps:
        result = run_query(spark, step.query, known)
        if step.alias is not None:
            result.createOrReplaceTempView(quoted(step.alias))
            known.add(step.alias)
    return in_canonical_order(result, {INPUT}), depends_on_order(result, {INPUT})


def run_query(spark: Any, sql: str, relations: Collection[str], *, known: Collection[str] = ()) -> Any:
    """Give the data frame of one query that passed the gate; `known` are names for a message, as in `parse_query`.

    Raises:
        InvalidQueryError: It is anything but a query over `relations`.
    """
    dataset = analyse_query(spark, parse_query(spark, sql, relations, known=known))
    check_analysed(dataset.queryExecution().analyzed(), relations)
    return rows_of(spark, dataset)


def _value(index: int, field: pa.Field) -> str:
    name = f"`{value_name(index)}`"
    if field.nullable:
        return name
    # No null is left in a required column; this tells Spark so, and with it the schema of the result.
    return f"coalesce({name}, {_some_value(carrier_of(field.type))})"


def _some_value(carrier: pa.DataType) -> str:
    name = spark_name_of(carrier)
    types = pa.types
    if types.is_list(carrier):
        return f"CAST(array() AS {name})"
    if types.is_struct(carrier):
        members = [
            f"'{f.name}', {f'CAST(NULL AS {spark_name_of(f.type)})' if f.nullable else _some_value(f.type)}"
            for f in carrier
        ]
        return f"named_struct({', '.join(members)})"
    if types.is_timestamp(carrier) or types.is_date(carrier):
        return f"CAST('1970-01-01' AS {name})"
    if types.is_boolean(carrier):
        return "false"
    return f"CAST('0' AS {name})"
