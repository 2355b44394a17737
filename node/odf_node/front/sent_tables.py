"""Tables that Python gives to a dataset: written as an Arrow stream, which its push source reads by columns.

Source: clause PYTHON-6 in ``spec/python.md``; clause ING-3 in ``spec/ingest.md``.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Protocol

import pyarrow as pa

from odf_node import ingest
from odf_node.datasets.chains import load_view
from odf_node.errors import UsageError
from odf_node.ports import DatasetRecord
from odf_node.ports.chains import ChainStore

_BATCH_ROWS: Final = 65_536
"""In a batch of the stream, so that the same table is the same bytes however its columns are cut.  # guess"""


class ArrowTable(Protocol):
    """A table of pyarrow, polars or pandas, or a reader: whatever has Arrow's interface for streams of its batches."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """Give the batches; see the Arrow PyCapsule interface."""
        ...


@contextmanager
def written_stream(
    chains: ChainStore, record: DatasetRecord, source: str | None, rows: ArrowTable
) -> Iterator[BinaryIO]:
    """Give a table as a stream in a file that is gone afterwards.

    Raises:
        UsageError: The push source reads no typed columns, or there is none.
    """
    view = load_view(chains, record.id)
    chosen = ingest.push_sources.choose_push_source(record, view, source)
    if ingest.push_sources.ARROW_STREAM not in ingest.push_sources.list_media_types(view, chosen):
        kind = type(chosen.read).__name__.removeprefix("ReadStep")
        expected = "tables go into a push source that reads Parquet, or declares its columns for CSV or JSON in UTF-8"
        raise UsageError(f"'{record.name}' reads {kind} as it is declared; {expected}")
    table = pa.RecordBatchReader.from_stream(rows).read_all().combine_chunks()
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=_BATCH_ROWS)
        file.seek(0)
        yield file
