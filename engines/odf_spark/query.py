"""The operation `query` of the worker: one read-only question over datasets.

Each dataset is a table under its name, dots and all: the whole changelog, system columns included. Beside it stands
`<name>__state`, the current rows: every row added (append, correct-to) and not taken away again (retract,
correct-from), without the columns that belong to the log.

Source: spec/query.md QUERY-1 to QUERY-6.
"""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.functions import expr
from pyspark.sql.pandas.types import to_arrow_type

from odf_engines.contract import QueryRequest, QueryTable
from odf_engines.errors import InvalidQueryError
from odf_engines.host.arrow_texts import schema_text
from odf_engines.host.queries import distinguish, quote_dotted_names
from odf_engines.ingest.slice_writer import iter_groups
from odf_engines.records.carriers import TIMESTAMP, carrier_of, quoted, slice_field_of, spark_name_of, to_carrier
from odf_protocol.errors import UnsupportedError
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.timestamp import Timestamp
from odf_spark.fixed_order import (
    allow_any_order,
    depends_on_order,
    in_canonical_order,
    in_one_order,
    unspilled,
)
from odf_spark.gate.statement import invalid_query
from odf_spark.handover import Handover
from odf_spark.preprocess import run_query
from odf_spark.relations import one_after_another
from odf_spark.slices import check_footers

STATE_SUFFIX = "__state"

_MAX_ROWS_COLLECTED = 10_000  # guess: of a hundred columns still fits a heap of a few hundred MiB

# What Spark itself reads such columns of a file as.
_PLAIN = frozenset(
    {pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.date32()}
    | {TIMESTAMP}
)
_ROWS_GIVEN_AND_TAKEN = "sum(CASE WHEN {op} IN (0, 3) THEN 1 ELSE -1 END)"


def run(spark: Any, request: QueryRequest, folder: Path) -> dict[str, object]:
    """Answer one question; see `worker` for what goes in and out.

    Raises:
        InvalidQueryError: It is not one query over the tables, or fails on a value.
    """
    work = folder / "work"
    work.mkdir()
    taken = {table.name for table in request.tables}
    names: list[str] = []
    for number, table in enumerate(request.tables):
        # A table that the text does not name cannot be asked; opening all a node has would take most of the time.
        if table.name.lower() in request.sql.lower():
            names += _register(spark, table, request.as_of, taken, work / str(number))
    # Small tables can have a large join, so only a bounded answer is collected.
    is_small = request.max_rows is not None and request.max_rows <= _MAX_ROWS_COLLECTED
    try:
        with in_one_order(spark):
            sql = quote_dotted_names(request.sql, names)
            answer = run_query(spark, sql, names, known={*taken, *request.known})
            matters = depends_on_order(answer, names)
            if not matters:
                allow_any_order(spark)
            states = [name for name in names if name not in taken]
            answer = in_canonical_order(answer, [name for name in names if name in taken], states)
            if request.max_rows is not None:
                answer = answer.limit(request.max_rows)
            with unspilled(spark, matters=matters):
                rows, schema = _write_answer(answer, Handover(work, is_small=is_small), folder / "result.parquet")
    except PySparkException as error:
        raise invalid_query(error) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {"result": "result.parquet", "rows": rows, "schema": schema_text(schema)}


def _register(spark: Any, table: QueryTable, as_of: Timestamp | None, taken: set[str], folder: Path) -> list[str]:
    try:
        schema = pa.schema([slice_field_of(field) for field in rows_schema_of(table.schema)])
    except UnsupportedError as error:
        raise InvalidQueryError(f"table {table.name} cannot be read: {error}") from error
    rows = _read_slices(spark, table, schema, folder)
    if not table.is_changelog:
        rows.createOrReplaceTempView(quoted(table.name))
        return [table.name]
    if as_of is not None:
        rows = rows.where(f"unix_millis({quoted(table.vocabulary.system_time)}) <= {as_of.unix_ms}")
    rows.createOrReplaceTempView(quoted(table.name))
    names = [table.name]
    state_name = f"{table.name}{STATE_SUFFIX}"
    if state_name not in taken:
        _state_of(rows, table, schema).createOrReplaceTempView(quoted(state_name))
        names.append(state_name)
    return names


def _read_slices(spark: Any, table: QueryTable, schema: pa.Schema, folder: Path) -> Any:
    if not table.slices:
        columns = [f"CAST(NULL AS {spark_name_of(carrier_of(f.type))}) AS {quoted(f.name)}" for f in schema]
        return spark.sql(f"SELECT {', '.join(columns)}").where("false")
    check_footers(table.slices)
    readable = [_readable(path, schema, folder / f"{number}.parquet") for number, path in enumerate(table.slices)]
    rows = one_after_another([_reader(spark, path).parquet(str(path)) for path in readable])
    columns = [f"CAST({quoted(f.name)} AS {spark_name_of(carrier_of(f.type))}) AS {quoted(f.name)}" for f in schema]
    return rows.selectExpr(*columns)


def _reader(spark: Any, path: Path) -> Any:
    """Give a reader that knows the columns of a file: Spark would run a job for each to find them out."""
    columns = []
    for field in pq.read_schema(path):
        kind = TIMESTAMP if pa.types.is_timestamp(field.type) and field.type.tz == "UTC" else field.type
        if kind not in _PLAIN and not pa.types.is_decimal128(kind):
            return spark.read
        columns.append(f"{quoted(field.name)} {spark_name_of(kind)}")
    return spark.read.schema(", ".join(columns))


def _readable(path: Path, schema: pa.Schema, copy: Path) -> Path:
    """Give a file that Spark can read: the slice itself, or a copy of it in carrier types."""
    with pq.ParquetFile(path) as file:
        if not any(_is_foreign_to_spark(field.type) for field in file.schema_arrow):
            return path
        copy.parent.mkdir(exist_ok=True)
        carried = pa.schema([pa.field(field.name, carrier_of(field.type)) for field in schema])
        with pq.ParquetWriter(copy, carried, compression="lz4") as writer:
            for batch in file.iter_batches(columns=schema.names):
                arrays = [to_carrier(batch.column(field.name), field.type) for field in schema]
                writer.write_batch(pa.record_batch(arrays, schema=carried))
    return copy


def _is_foreign_to_spark(kind: pa.DataType) -> bool:
    if kind.num_fields:
        return any(_is_foreign_to_spark(kind.field(i).type) for i in range(kind.num_fields))
    types = pa.types
    is_nanoseconds = types.is_timestamp(kind) and kind.unit == "ns"
    return bool(types.is_time(kind) or types.is_duration(kind) or types.is_float16(kind) or is_nanoseconds)


def _state_of(rows: Any, table: QueryTable, schema: pa.Schema) -> Any:
    """Give the current rows.

    A retraction or a correct-from carries the values of the row it takes away, so counting equal rows given and taken
    gives the state of any changelog, whatever its key.
    """
    log = (table.vocabulary.offset, table.vocabulary.op, table.vocabulary.system_time)
    data = [quoted(name) for name in schema.names if name not in log]

    count = expr(_ROWS_GIVEN_AND_TAKEN.format(op=quoted(table.vocabulary.op))).alias("\0count")
    counted = rows.groupBy(*data).agg(count).where("`\0count` > 0")
    return counted.selectExpr(*data, "explode(array_repeat(0, CAST(`\0count` AS INT)))").select(*data)


def _write_answer(answer: Any, handover: Handover, target: Path) -> tuple[int, pa.Schema]:
    """Write the rows of an answer in their order, under their names; a repeated name gets a number."""
    positional = [f"v{i}" for i in range(len(answer.columns))]
    fields = []
    for name, column in zip(distinguish(answer.columns), answer.schema.fields, strict=True):
        fields.append(pa.field(name, to_arrow_type(column.dataType, timezone="UTC"), column.nullable))
    schema = pa.schema(fields)
    count = 0
    with pq.ParquetWriter(target, schema, version="2.6", compression="snappy") as writer:
        for table in iter_groups(handover.iter_batches(answer.toDF(*positional), "answer")):
            writer.write_table(table.rename_columns(schema.names).cast(schema))
            count += table.num_rows
    return count, schema
