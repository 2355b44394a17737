"""What Parquet files of an engine hold, read as hostile: batch by batch, all columns, against bounds.

A small file can stand for values that no memory holds: by compression, by a dictionary of one long text, by lists of
which only the lengths are written. So a check reads everything once and counts what comes out, and nobody else opens a
file before. It runs where memory is bounded: in ``reading.program``, or in the container of a caller (GRPC-11);
reading the file again takes no more than that.

Source: clauses ENGINE-6 and ENGINE-19 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.errors import EngineFailureError, LimitExceededError
from odf_engines.host.output_checks import OPERATIONS, RowsCheck, RowsFound, SizeCheck
from odf_engines.host.tables import copy_rows
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.hashing.arrow0 import Arrow0Hasher
from odf_protocol.hashing.reader_schema import reader_schema

_TAIL_BYTES = 8  # length of the footer and "PAR1"
_MAX_FOOTER_BYTES = 64 * 1024 * 1024  # guess: a thousand columns in a thousand row groups are 50 MiB

# At most about twenty bytes from one; others turn a small file into one that no disk holds.
_CODECS = ("SNAPPY", "UNCOMPRESSED")

_BATCH_ROWS = 65_536  # as the readers of slices have it, so that they need no more memory than was tried
_HASHING_THREADS = 2  # columns are hashed side by side


def check_file(source: Path | pa.Buffer, check: RowsCheck | SizeCheck) -> RowsFound:
    """Read everything in a file.

    Raises:
        EngineFailureError: It is no Parquet file, or no such slice; says which column or row.
        LimitExceededError: Too many rows, or too much in them.
    """
    if isinstance(check, RowsCheck):
        return _check_rows(source, check)
    with _opened(source) as file:
        if check.schema is not None and not file.schema_arrow.remove_metadata().equals(check.schema):
            raise EngineFailureError("output has other columns than the answer says")
        found = sum(batch.num_rows for batch in _batches(file, check.max_decoded_bytes))
    if check.rows not in {None, found}:
        raise EngineFailureError(f"output: expected {check.rows} rows, found {found}")
    return RowsFound()


def copy_first(source: Path | pa.Buffer, target: Any, most: int | None) -> None:
    """Write the first rows of a file that was checked, or all, as ``tables.read_rows`` reads them.

    Raises:
        EngineFailureError: It is no Parquet file.
    """
    with _opened(source) as file:
        copy_rows(file, target, columns=None, most=most)


def _check_rows(source: Path | pa.Buffer, check: RowsCheck) -> RowsFound:
    rows = check.interval.row_count
    if rows > check.max_rows:
        raise LimitExceededError("output_rows", allowed=check.max_rows, found=rows)
    with _opened(source) as file, ThreadPoolExecutor(_HASHING_THREADS) as threads:
        _check_layout(file.metadata, rows)
        if not file.schema_arrow.remove_metadata().equals(check.schema):
            raise EngineFailureError("output has other columns than the schema that was answered")
        if file.metadata.num_rows != rows:
            raise EngineFailureError(f"output: expected {rows} rows, found {file.metadata.num_rows}")
        hasher = _find_hasher(file, threads)
        next_offset = check.interval.start
        operations = np.zeros(OPERATIONS, np.int64)
        for batch in _batches(file, check.max_decoded_bytes):
            operations += _check_batch(check, batch, next_offset)
            next_offset += batch.num_rows
            if hasher is not None:
                hasher.update(batch)
        if next_offset != check.interval.end + 1:
            raise EngineFailureError(f"output: expected {rows} rows, found {next_offset - check.interval.start}")
        return RowsFound(None if hasher is None else hasher.digest(), tuple(operations.tolist()))


def _check_batch(check: RowsCheck, batch: pa.RecordBatch, next_offset: int) -> npt.NDArray[np.int64]:
    """Check some rows, and count them by operation."""
    if not batch.num_rows:
        return np.zeros(OPERATIONS, np.int64)
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise EngineFailureError(f"output: a cell is no value of its column's type ({error})") from error
    # Their places are those of the schema, whose first columns are these: check_system_columns.
    offsets, ops, instants = (batch.column(name) for name in check.vocabulary.columns[:3])
    if not offsets.equals(_count_from(next_offset, len(batch))):
        raise EngineFailureError(f"output: offsets do not count from {next_offset}")
    operations = pc.min_max(ops).as_py()
    if ops.null_count or not 0 <= operations["min"] <= operations["max"] < OPERATIONS:
        raise EngineFailureError(f"output: operations {operations} are not 0 to {OPERATIONS - 1}")
    times = pc.min_max(instants.cast(pa.int64())).as_py()
    if instants.null_count or times != {"min": check.system_time_ms, "max": check.system_time_ms}:
        raise EngineFailureError(f"output: expected system time {check.system_time_ms} ms, found {times}")
    return np.bincount(ops.to_numpy(), minlength=OPERATIONS)


@contextmanager
def _opened(source: Path | pa.Buffer) -> Iterator[pq.ParquetFile]:
    try:
        with _bytes_of(source) as content:
            _check_footer_length(content)
            with pq.ParquetFile(content) as file:
                yield file
    except MemoryError:
        raise  # says nothing about the form of the file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise EngineFailureError(f"output is not readable as Parquet ({error})") from error


def _bytes_of(source: Path | pa.Buffer) -> pa.NativeFile:
    return pa.BufferReader(source) if isinstance(source, pa.Buffer) else pa.OSFile(str(source))


def _batches(file: pq.ParquetFile, max_decoded_bytes: int) -> Iterator[pa.RecordBatch]:
    """Give all rows, reading one batch ahead; more values than allowed end it."""
    decoded_bytes = 0
    batches = file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False)
    with closing(batches), ThreadPoolExecutor(1) as ahead:
        running = ahead.submit(next, batches, None)
        while (batch := running.result()) is not None:
            decoded_bytes += batch.nbytes
            if decoded_bytes > max_decoded_bytes:
                raise LimitExceededError("decoded_bytes", allowed=max_decoded_bytes, found=decoded_bytes)
            running = ahead.submit(next, batches, None)
            yield batch


def _find_hasher(file: pq.ParquetFile, threads: ThreadPoolExecutor) -> Arrow0Hasher | None:
    metadata = file.metadata
    try:
        return Arrow0Hasher(
            reader_schema(file.schema_arrow, metadata.metadata),
            executor=threads,
            row_group_rows=[metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)],
        )
    except UnsupportedError:
        return None
    except MalformedError as error:
        raise EngineFailureError(f"output is not readable as Parquet ({error})") from error


def _check_footer_length(content: pa.NativeFile) -> None:
    """Reject a footer that costs gigabytes to parse, before anything parses it (Parquet format, "File layout")."""
    content.seek(max(0, content.size() - _TAIL_BYTES))
    length = int.from_bytes(content.read(4), "little")
    if length > _MAX_FOOTER_BYTES:
        raise EngineFailureError(f"output has a footer of {length} bytes, more than {_MAX_FOOTER_BYTES}")


def _check_layout(metadata: pq.FileMetaData, rows: int) -> None:
    """Reject what an honest engine does not write: compression that can swell a thousandfold, floods of row groups."""
    groups = metadata.num_row_groups
    if groups > max(rows, 1):
        raise EngineFailureError(f"output has {groups} row groups for {rows} rows")
    for group in range(groups):
        for column in range(metadata.num_columns):
            if (codec := metadata.row_group(group).column(column).compression) not in _CODECS:
                raise EngineFailureError(f"output is compressed with {codec}, expected one of {', '.join(_CODECS)}")


def _count_from(start: int, length: int) -> pa.Array:
    return pa.array(np.arange(start, start + length, dtype=np.int64))
