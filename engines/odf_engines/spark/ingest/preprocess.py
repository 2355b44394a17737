"""The preprocess step: queries over the table `input`.

Source: ODF "preprocess"; spec/ingest.md ING-7.
"""

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from odf_engines.errors import EngineMissingError
from odf_engines.records.carriers import carrier_of, quoted, spark_name_of
from odf_engines.records.source_records import ERRORS, RECORD, value_name
from odf_engines.spark.fixed_order import depends_on_order, in_canonical_order
from odf_engines.spark.gate.statement import analyse_query, check_analysed, parse_query
from odf_engines.spark.java_side import rows_of
from odf_protocol.events import SqlQueryStep, TransformSql

INPUT = "input"

_ENGINE = "spark"


def run_preprocess(spark: Any, transform: TransformSql, converted: Any, target: pa.Schema) -> tuple[Any, bool]:
    """Run the queries of `transform` over the good rows of `converted`; give the last one's data frame.

    The rows are one ordered partition, so that a query that only selects and filters keeps their order; those of other
    queries get one. To be called, and computed, in one partition.

    Returns:
        The data frame, and whether it is right only if nothing is spilled.

    Raises:
        InvalidQueryError: A query is wrong, or is anything but a query over `input` and earlier steps.
        EngineMissingError: It is written for another engine.
    """
    if transform.engine.lower() != _ENGINE:
        raise EngineMissingError(transform.engine, (_ENGINE,), purpose="preprocess")
    rows = converted.where(f"{ERRORS} IS NULL").coalesce(1).sortWithinPartitions(RECORD)
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
