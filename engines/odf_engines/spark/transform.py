"""The operation ``transform``: one step of a derivative.

Only maps are executed so far. Spark computes the rows with the offsets and operations they came with, piece by piece;
meanwhile the operations of those before are mended and the slice is written. Only some pieces are held in memory.

Source: clauses ENGINE-11, ENGINE-12; MAP-1 to MAP-8 in ``spec/extensions/changelog-maps.md``.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from odf_engines.contract import TransformInput, TransformRequest
from odf_engines.errors import InvalidQueryError, LimitExceededError
from odf_engines.spark.changelog import mend_tables
from odf_engines.spark.gate.statement import invalid_query
from odf_engines.spark.map_plan import carry_source
from odf_engines.spark.pieces import PIECE_BYTES, collect_pieces, cut_even, fit_in_memory, store_pieces
from odf_engines.spark.relations import MOST_SCANS, empty_rows, ordered_rows
from odf_engines.spark.slices import output_schema, write_slice
from odf_engines.spark.steps import analyse_transform
from odf_engines.spark.worker import schema_text
from odf_protocol.timestamp import Timestamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["run"]

_PIECE_ROWS = 131_072  # guess: a few MB of rows in a row group of the slice


def run(spark: "SparkSession", request: TransformRequest, folder: Path) -> dict[str, object]:
    """Run one step; see ``worker`` for what goes in and out."""
    from pyspark.errors import PySparkException

    aliases = [each.alias for each in request.inputs]
    if len(set(aliases)) != len(aliases):
        raise InvalidQueryError(f"two inputs have the same alias: {', '.join(aliases)}")
    spark.conf.set("spark.sql.files.maxPartitionBytes", PIECE_BYTES)
    rows = {each.alias: _rows_of(spark, each) for each in request.inputs}
    inputs = {each.alias: (rows[each.alias], each.vocabulary) for each in request.inputs}
    analysis = analyse_transform(spark, request.transform, inputs, request.vocabulary)
    source = next(each for each in request.inputs if each.alias == analysis.get_map().input_alias)
    result = carry_source(spark, analysis.plan, rows[source.alias], source.alias, source.vocabulary)
    own = type(result.schema)(result.schema.fields[:-2])
    schema = output_schema(own.json(), request.vocabulary)

    rows_in = rows_out = 0
    if source.offset_interval is not None:
        rows_in = source.offset_interval.end - source.offset_interval.start + 1

        # Many slices are sorted in one partition; a little is computed in one as well.
        is_held = _is_small(source) or (len(source.slices) <= MOST_SCANS and fit_in_memory(source.slices))
        pieces = collect_pieces(result) if is_held else store_pieces(result, folder / "work", _PIECE_ROWS)
        try:
            rows_out = write_slice(
                mend_tables(cut_even(_bounded(pieces, request.limits.output_rows), _PIECE_ROWS)),
                schema,
                folder / "data.parquet",
                next_offset=request.next_offset,
                system_time_ms=request.system_time.unix_ms,
            )
        except PySparkException as error:
            raise invalid_query(error) from error
    watermark = _watermark(request, source if analysis.get_map().passes_event_time else None)
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
    return ordered_rows(
        spark, each.schema, each.slices, each.offset_interval, each.vocabulary,
        alias=each.alias, in_one_partition=_is_small(each),
    )  # fmt: skip


def _is_small(each: TransformInput) -> bool:
    return sum(path.stat().st_size for path in each.slices) <= PIECE_BYTES


def _bounded(pieces: Iterable[pa.Table], most_rows: int) -> Iterator[pa.Table]:
    count = 0
    for piece in pieces:
        count += piece.num_rows
        if count > most_rows:
            raise LimitExceededError("output_rows", allowed=most_rows, found=count)
        yield piece


def _watermark(request: TransformRequest, source: TransformInput | None) -> Timestamp | None:
    """Return the newest watermark that the input stated, never below the one reported before (MAP-8).

    Args:
        request: The step.
        source: The input, None where its watermarks say nothing about the output's event time.
    """
    known = [] if source is None else [mark.event_time for mark in source.watermarks]
    if request.prev_watermark is not None:
        known.append(request.prev_watermark)
    return max(known, default=None)
