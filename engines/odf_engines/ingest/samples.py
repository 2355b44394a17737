"""The first rows behind a stage, for a person who rehearses an ingest: taken as they go by.

Source: clause ING-25 in ``spec/ingest.md``.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_engines.ingest.result import Folders
from odf_engines.records.carriers import from_carrier, to_carrier
from odf_engines.records.source_records import value_name
from odf_engines.row_samples import MOST_SAMPLE_ROWS, SampledStage, sample_name

__all__ = ["write_sample", "write_sample_of_file"]


def write_sample_of_file(
    request: IngestRequest, folders: Folders, stage: SampledStage, path: Path, schema: pa.Schema
) -> None:
    """Write the first rows of a file of typed records down, where the request asks for samples."""
    if not request.has_samples:
        return
    with pq.ParquetFile(path) as file:
        names = [value_name(index) for index in range(len(schema))]
        first = next(file.iter_batches(batch_size=MOST_SAMPLE_ROWS, columns=names), None)
    write_sample(request, folders, stage, first, schema)


def write_sample(
    request: IngestRequest,
    folders: Folders,
    stage: SampledStage,
    rows: "pa.RecordBatch | pa.Table | None",
    schema: pa.Schema,
) -> None:
    """Write the first rows behind a stage down, once, where the request asks for samples.

    Args:
        request: Of the ingest.
        folders: Where.
        stage: The stage.
        rows: In carrier types, columns by position; None: there are none.
        schema: Names and types of the columns.
    """
    path = folders.output / sample_name(stage)
    if not request.has_samples or path.exists():
        return
    table = schema.empty_table()
    if rows is not None and rows.num_rows:
        first = rows.slice(0, MOST_SAMPLE_ROWS)
        whole = pa.Table.from_batches([first]) if isinstance(first, pa.RecordBatch) else first
        columns = [whole.column(value_name(index)).combine_chunks() for index in range(len(schema))]
        kinds = [field.type for field in schema]
        plain = [from_carrier(to_carrier(each, kind), kind) for each, kind in zip(columns, kinds, strict=True)]
        table = pa.table(plain, schema=schema)
    pq.write_table(table, path)
