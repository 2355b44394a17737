"""Rows on their way out of the sandbox: Arrow's stream format, every cell checked where it comes in.

It is what a decoder outside of the sandbox has to do with: fixed layouts without encodings, which Arrow verifies.
"""

from collections.abc import Iterator, Sequence
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_BATCH_BYTES: Final = 4 * 1024 * 1024  # guess: large beside the work for a batch, small beside what a reader may use
_FEWEST_ROWS: Final = 512
_MAX_ROWS: Final = 8_192


class NoRowsError(ValueError):
    """What came out of the sandbox is no table: somebody wrote it in the program's place."""


def table_bytes(table: pa.Table) -> bytes:
    """Write a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def copy_rows(file: pq.ParquetFile, target: Any, *, columns: Sequence[str] | None, most: int | None) -> None:
    """Write the rows of a file, or the first ones, or some of the columns; the file's own notes are left out."""
    schema = file.schema_arrow.remove_metadata()
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    left = file.metadata.num_rows if most is None else most
    with pa.ipc.new_stream(target, schema) as stream:
        for batch in file.iter_batches(_rows_at_once(file.metadata), columns=columns and [*columns], use_threads=False):
            stream.write_batch(pa.RecordBatch.from_arrays(batch.select(schema.names).columns, schema=schema)[:left])
            left -= batch.num_rows
            if left <= 0:
                break


def _rows_at_once(metadata: pq.FileMetaData) -> int:
    """Say how many rows to read at once, by what a footer says of their size, which may be wrong."""
    size_bytes = sum(max(0, metadata.row_group(index).total_byte_size) for index in range(metadata.num_row_groups))
    rows: int = _BATCH_BYTES * max(1, metadata.num_rows) // max(1, size_bytes)
    return min(_MAX_ROWS, max(_FEWEST_ROWS, rows))


def table_of(body: bytes) -> pa.Table:
    """Read a table that came out of the sandbox.

    Raises:
        NoRowsError: It is no table whose cells are of their columns' types.
    """
    return table_in(pa.BufferReader(body))


def table_in(file: "IO[bytes] | pa.NativeFile") -> pa.Table:
    """Read a table that came out of the sandbox into a file; errors as ``table_of``."""
    return collect(*read_rows(file))


def collect(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
    """Hold all rows at once."""
    return pa.Table.from_batches(batches, schema)


def read_rows(file: "IO[bytes] | pa.NativeFile") -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read rows that came out of the sandbox, one batch at a time; errors as ``table_of``, also of the iterator."""
    try:
        stream = pa.ipc.open_stream(file)
    except (pa.ArrowException, OSError) as error:
        raise NoRowsError(str(error)) from error
    return stream.schema, _iter_checked(stream)


def _iter_checked(stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = stream.read_next_batch()
            batch.validate(full=True)
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as error:
            raise NoRowsError(str(error)) from error
        yield batch
