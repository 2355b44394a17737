"""Rows of files in one order, divided among the cores of a cluster.

Source: CLUSTER-1 in ``spec/extensions/engine-cluster.md``; spec/ingest.md ING-8 to ING-12.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.functions import col, expr

from odf_engines.merging.row_order import ORD, SIDE, Input, RowOrder
from odf_engines.records.carriers import quoted, spark_name_of
from odf_spark.handover import Handover


class SparkOrder(RowOrder):
    """See ``RowOrder``; each order is a job of its own.

    Args:
        spark: Session.
        handover: Takes the rows out of it.
    """

    def __init__(self, spark: Any, handover: Handover) -> None:
        self._spark, self._handover = spark, handover

    def order_file(
        self, records: Path, names: tuple[str, ...], stand_ins: Mapping[str, pa.Scalar]
    ) -> Iterator[pa.RecordBatch]:
        """See ``RowOrder``."""
        schema = pq.read_schema(records)
        rows = self._read(records, schema)
        values = [
            expr(f"coalesce({quoted(name)}, {_literal_of(stand_ins[name])})")
            if name in stand_ins
            else col(quoted(name))
            for name in names
        ]
        return self._ordered(rows, values, schema, f"file-{records.stem}")

    def order_inputs(
        self, inputs: Sequence[Input], types: Mapping[str, pa.DataType], keys: tuple[str, ...]
    ) -> Iterator[pa.RecordBatch]:
        """See ``RowOrder``."""
        schema = pa.schema([(SIDE, pa.int64()), (ORD, pa.int64()), *types.items()])
        rows = reduce(lambda found, other: found.unionAll(other), (self._rows_of(each, types) for each in inputs))
        return self._ordered(rows, [col(quoted(name)) for name in (*keys, SIDE, ORD)], schema, "inputs")

    def _rows_of(self, given: Input, types: Mapping[str, pa.DataType]) -> Any:
        sign = "-" if given.is_descending else ""
        number = "0" if given.number is None else f"{sign}{quoted(given.number)}"
        values = [
            f"CAST({quoted(given.names[name]) if name in given.names else 'NULL'} AS {spark_name_of(kind)})"
            f" AS {quoted(name)}"
            for name, kind in types.items()
        ]
        rows = self._read(given.path, pq.read_schema(given.path))
        return rows.selectExpr(f"CAST({given.side} AS BIGINT) AS {SIDE}", f"CAST({number} AS BIGINT) AS {ORD}", *values)

    def _read(self, path: Path, schema: pa.Schema) -> Any:
        # A stated schema saves Spark a job that would look for it in the file.
        types = ", ".join(f"{quoted(field.name)} {spark_name_of(field.type)}" for field in schema)
        return self._spark.read.schema(types).parquet(str(path))

    def _ordered(self, rows: Any, values: Sequence[Any], schema: pa.Schema, name: str) -> Iterator[pa.RecordBatch]:
        ordered = rows.orderBy(*(value.asc_nulls_first() for value in values))
        for batch in self._handover.iter_batches(ordered, name):
            yield batch.cast(schema)


def _literal_of(value: pa.Scalar) -> str:
    if pa.types.is_date32(value.type):
        return f"date_from_unix_date({value.cast(pa.int32()).as_py()})"
    return f"timestamp_millis({value.cast(pa.int64()).as_py()})"
