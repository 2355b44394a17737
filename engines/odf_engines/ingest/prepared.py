"""Rows of a source on their way to a query that another engine runs, with the names and types of the read step.

Source: spec/ingest.md ING-7.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_engines.ingest.quarantine import write_quarantine
from odf_engines.ingest.quarantined_rows import BadRows, list_unread
from odf_engines.ingest.read import ReadResult
from odf_engines.ingest.result import Folders
from odf_engines.records.carriers import from_carrier, to_carrier
from odf_engines.records.source_records import ROW_GROUP_ROWS, value_name
from odf_engines.stage_figures import IngestStage


def write_converted(
    request: IngestRequest,
    folders: Folders,
    result: ReadResult,
    batches: Iterable[pa.RecordBatch],
    bad: list[BadRows],
) -> dict[str, object]:
    """Write converted rows for a query, and the records that are none of them.

    Args:
        request: Of the ingest.
        folders: Where.
        result: What was read.
        batches: Good rows in the order of the source, in carrier types, columns by position.
        bad: Records that could not be converted.

    Returns:
        The answer, as plain values.
    """
    schema = result.target
    with (
        folders.clock.measuring(IngestStage.PREPROCESS),
        pq.ParquetWriter(folders.output / "rows.parquet", schema, compression="lz4") as writer,
    ):
        for batch in batches:
            columns = [_as_read(batch.column(value_name(i)), field.type) for i, field in enumerate(schema)]
            writer.write_batch(pa.record_batch(columns, schema=schema), ROW_GROUP_ROWS)
    path = folders.output / "quarantine.parquet"
    with folders.clock.measuring(IngestStage.QUARANTINE):
        written = write_quarantine(path, request, result.records, [*list_unread(result.records), *bad])
    return {
        "rows": "rows.parquet",
        "quarantine": path.name if written.rows else None,
        "records": result.records.record_count,
        "left_out": result.left_out,
        "stages": folders.clock.to_answer(),
    }


def _as_read(column: pa.Array, target: pa.DataType) -> pa.Array:
    # Spark gives finer times, and lists with another name for their items.
    return from_carrier(to_carrier(column, target), target)


def iter_converted(records: Path) -> Iterator[pa.RecordBatch]:
    """Give the rows of a file of converted records."""
    with pq.ParquetFile(records) as file:
        yield from file.iter_batches(batch_size=ROW_GROUP_ROWS)
