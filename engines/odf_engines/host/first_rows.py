"""The first rows of a file that an engine wrote and that was checked.

Source: clause ING-25 in ``spec/ingest.md``.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.row_samples import MOST_SAMPLE_ROWS

__all__ = ["read_first_rows"]


def read_first_rows(path: Path) -> pa.Table:
    """Read a few rows, and no more of the file."""
    with pq.ParquetFile(path) as file:
        first = next(file.iter_batches(batch_size=MOST_SAMPLE_ROWS), None)
        return file.schema_arrow.empty_table() if first is None else pa.Table.from_batches([first])
