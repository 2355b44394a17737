"""The operation ``transform``: one step of a derivative.

Only maps are executed so far. Spark writes the rows with the offsets and operations they came with to one temporary
file, and a second pass mends the operations and writes the slice; neither holds more than a piece of the rows in
memory.

Source: clauses ENGINE-11, ENGINE-12; MAP-1 to MAP-8 in ``spec/extensions/changelog-maps.md``.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import TransformInput, TransformRequest
from odf_engines.errors import InvalidQueryError, LimitExceededError
from odf_engines.spark.changelog import mend_tables
from odf_engines.spark.gate.statement import invalid_query
from odf_engines.spark.map_plan import carry_source
from odf_engines.spark.relations import empty_rows, ordered_rows
from odf_engines.spark.slices import output_schema, write_slice
from odf_engines.spark.steps import analyse_transform
from odf_engines.spark.worker import schema_text
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["run"]

# guess: a row may grow to 10 kB before this many no longer fit beside Java's heap
_SMALL_ROWS = 50_000
_SMALL_BYTES = 8 * 1024 * 1024

_PIECE_ROWS = 131_072  # guess: a few MB of rows; also the size of row groups in the slice


def run(spark: "SparkSession", request: TransformRequest, folder: Path) -> dict[str, object]:
    """Run one step; see ``worker`` for what goes in and out."""
    from pyspark.errors import PySparkException

    aliases = [each.alias for each in request.inputs]
    if len(set(aliases)) != len(aliases):
        raise InvalidQueryError(f"two inputs have the same alias: {', '.join(aliases)}")
    rows = {each.alias: _rows_of(spark, each) for each in request.inputs}
    inputs = {each.alias: (rows[each.alias], each.vocabulary) for each in request.inputs}
    analysis = analyse_transform(spark, request.transform, inputs, request.vocabulary)
    source = next(each for each in request.inputs if each.alias == analysis.query.input_alias)
    result = carry_source(spark, analysis.plan, rows[source.alias], source.alias, source.vocabulary)
    own = type(result.schema)(result.schema.fields[:-2])
    schema = output_schema(own.json(), request.vocabulary)

    rows_in = rows_out = 0
    if source.offset_interval is not None:
        rows_in = source.offset_interval.end - source.offset_interval.start + 1
        work = folder / "work"
        is_small = rows_in <= _SMALL_ROWS and sum(path.stat().st_size for path in source.slices) <= _SMALL_BYTES
        try:
            tables = _held_pieces(result) if is_small else _stored_pieces(result, work)
        except PySparkException as error:
            raise invalid_query(error) from error
        rows_out = write_slice(
            mend_tables(_bounded(tables, request.limits.output_rows)),
            schema,
            folder / "data.parquet",
            next_offset=request.next_offset,
            system_time_ms=request.system_time.unix_ms,
        )
        shutil.rmtree(work, ignore_errors=True)
    watermark = _watermark(request, source)
    return {
        "schema": schema_text(schema),
        "data": "data.parquet" if rows_out else None,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "late_rows": 0,
        "watermark_ms": None if watermark is None else watermark.unix_ms,
        "checkpoint": None,
    }


def _rows_of(spark: "SparkSession", each: TransformInput) -> "DataFrame":
    if each.offset_interval is None or not each.slices:
        return empty_rows(spark, each.schema, alias=each.alias)
    return ordered_rows(spark, each.schema, each.slices, each.offset_interval, each.vocabulary, alias=each.alias)


def _held_pieces(result: "DataFrame") -> Iterator[pa.Table]:
    """Take the rows over in memory, cut like stored ones."""
    batches = result._collect_as_arrow()  # noqa: SLF001 - the public toArrow copies once more
    if not batches:
        return iter(())
    table = pa.Table.from_batches(batches)
    return (table.slice(start, _PIECE_ROWS) for start in range(0, table.num_rows, _PIECE_ROWS))


def _stored_pieces(result: "DataFrame", folder: Path) -> Iterator[pa.Table]:
    """Let Spark store the rows, then read them in pieces whose size depends on the rows only."""
    result.write.parquet(str(folder))
    return _read_pieces(folder)


def _read_pieces(folder: Path) -> Iterator[pa.Table]:
    for path in sorted(folder.glob("part-*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PIECE_ROWS):
                yield pa.Table.from_batches([batch])


def _bounded(pieces: Iterable[pa.Table], most_rows: int) -> Iterator[pa.Table]:
    count = 0
    for piece in pieces:
        count += piece.num_rows
        if count > most_rows:
            raise LimitExceededError("output_rows", allowed=most_rows, found=count)
        yield piece


def _watermark(request: TransformRequest, source: TransformInput) -> Timestamp | None:
    """Return the newest watermark that the input stated, never below the one reported before (MAP-8)."""
    known = [mark.event_time for mark in source.watermarks]
    if request.prev_watermark is not None:
        known.append(request.prev_watermark)
    return max(known, default=None)
