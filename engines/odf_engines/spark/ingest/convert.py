"""Convert records of text to the types of the schema; note everything that is wrong with those that do not convert.

The result has the columns `record`, `errors` (null for a good row, else a list) and one per field of the schema, named
by position (`v0`, `v1`, …), in carrier types.

Source: spec/ingest.md ING-4, ING-6.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

from odf_engines.ingest.text_forms import text_form_of
from odf_engines.records.carriers import carrier_of, quoted, spark_name_of
from odf_engines.records.source_records import (
    ERRORS,
    ERRORS_TYPE,
    RECORD,
    SourceRecords,
    physical_name,
    value_name,
)
from odf_engines.records.time_patterns import TimePatterns
from odf_engines.spark.ingest.text_faults import faults_of


def convert_records(spark: Any, records: SourceRecords, target: pa.Schema, times: TimePatterns) -> Any:
    """Give a data frame of the rows of `records`, converted to `target`.

    Args:
        spark: Session; its time zone is UTC.
        records: Result of a read step whose names include those of `target`.
        target: Fields in slice types.
        times: How dates and timestamps are written.
    """
    # A stated schema saves Spark a job that would look for it in the file.
    if records.is_typed:
        return _typed_rows(spark, records.path, target)
    texts = [f"{physical_name(i)} STRING" for i in range(len(records.names))]
    rows = spark.read.schema(", ".join([f"{RECORD} BIGINT", *texts])).parquet(str(records.path))
    # In two steps, so that Spark computes a value once although its error asks for it again.
    values, verdicts = _values(records.names, target, times), _verdicts(records.names, target, times)
    return rows.selectExpr("*", *values).selectExpr(*verdicts)


def _typed_rows(spark: Any, path: Path, target: pa.Schema) -> Any:
    values = [f"{value_name(i)} {spark_name_of(carrier_of(field.type))}" for i, field in enumerate(target)]
    errors = f"{ERRORS} {spark_name_of(ERRORS_TYPE)}"
    return spark.read.schema(", ".join([f"{RECORD} BIGINT", errors, *values])).parquet(str(path))


def _values(names: tuple[str, ...], target: pa.Schema, times: TimePatterns) -> list[str]:
    forms = [text_form_of(physical_name(names.index(field.name)), field.type, times) for field in target]
    return [f"{form.value} AS {value_name(index)}" for index, form in enumerate(forms)]


def _verdicts(names: tuple[str, ...], target: pa.Schema, times: TimePatterns) -> list[str]:
    good, errors = [], []
    for index, field in enumerate(target):
        text = physical_name(names.index(field.name))
        is_good = f"{value_name(index)} IS NOT NULL"
        good.append(f"({text} IS NULL OR {is_good})" if field.nullable else f"({is_good})")
        errors.append(f"CASE WHEN NOT {good[-1]} THEN {faults_of(text, field, times)} END")
    listed = f"flatten(array_compact(array({', '.join(errors)})))"
    verdict = f"CASE WHEN NOT ({' AND '.join(good)}) THEN {listed} END AS {quoted(ERRORS)}"
    return [RECORD, verdict, *(value_name(index) for index in range(len(target)))]
