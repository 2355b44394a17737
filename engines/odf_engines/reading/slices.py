"""Reading Parquet slices as the protocol judges them: rows against their block, and the logical hash.

A slice comes from a peer or from an engine; either may lie. Sizes are known from the block before the file is opened,
counts are checked before rows are read, and rows are read in small batches. Source: ROWS-1 to ROWS-5 in
``spec/extensions/acceptance.md``.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.reading.batches_ahead import iter_ahead
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.events import DataSchema, DataSlice
from odf_protocol.hashing.arrow0 import Arrow0Hasher
from odf_protocol.hashing.reader_schema import reader_schema
from odf_protocol.hashing.v1 import LogicalHasher, TableSummary
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import data_schema_of
from odf_protocol.schema_compat import find_slice_incompatibility
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

BATCH_ROWS: Final = 65_536  # guess: as many as make the work for a batch small beside that for its rows
_BATCH_BYTES: Final = 2 * 1024 * 1024
"""Rows of this size are read at once, where the file tells the truth: memory that is touched for the first time costs
more than what is done in it. Nothing else depends on it. Guess: as much as a processor keeps close."""
_FEWEST_ROWS: Final = 1024
HASHING_THREADS: Final = 2  # columns are hashed side by side; hashing releases the interpreter lock
_TICKS_PER_MS: Final = {"s": 1, "ms": 1, "us": 10**3, "ns": 10**6}
_MS_PER_TICK: Final = {"s": 10**3, "ms": 1, "us": 1, "ns": 1}
OPERATIONS: Final = range(4)  # Source: ODF OperationType

Source: TypeAlias = Path | pa.Buffer
"""A file, or what is mapped of one that was handed over open."""

# Arrow passes errors of the Parquet format on as these; names of columns need not be UTF-8.
_UNREADABLE: Final = (pa.ArrowException, OSError, UnicodeDecodeError)


def logical_hash_of(path: Source) -> Multihash:
    """Hash the rows of a slice with ``arrow0-sha3-256``.

    Raises:
        MalformedError: The file is no Parquet file.
        UnsupportedError: A column has a type that the hash does not define.
    """
    with open_slice(path) as file, ThreadPoolExecutor(HASHING_THREADS) as threads:
        hasher = _hasher_for(file, threads)
        for batch in _iter_batches(file):
            hasher.update(batch)
        return hasher.digest()


def check_slice(
    path: Source,
    claimed: DataSlice,
    *,
    schema: DataSchema,
    vocabulary: Vocabulary,
    system_time: Timestamp,
    sequence_number: int,
    keep: Callable[[pa.RecordBatch], None] = lambda _batch: None,
) -> None:
    """Check every row of a slice against the block that adds it (ROWS-1 to ROWS-5, ROWS-8), in one read.

    Args:
        path: The slice.
        claimed: What the block says of it.
        schema: In force at the block.
        vocabulary: Names of the system columns.
        system_time: Of the block.
        sequence_number: Of the block.
        keep: Gets the rows while they are checked; they count only once nothing was raised.

    Raises:
        RejectedError: A rule is broken; ``rule`` says which, ``expected`` and ``found`` how.
        MalformedError: The file is no Parquet file.
    """
    with open_slice(path) as file, ThreadPoolExecutor(HASHING_THREADS) as threads:
        rows = claimed.offset_interval.row_count
        problem = find_slice_incompatibility(schema, data_schema_of(_logical_schema(file)))
        if problem:
            raise RejectedError(
                "ROWS-1 columns-are-those-of-the-schema", sequence_number=sequence_number, found=problem
            )
        if file.metadata.num_rows != rows:
            raise RejectedError(
                "ROWS-2 one-row-per-offset",
                sequence_number=sequence_number,
                expected=f"{rows} rows",
                found=f"{file.metadata.num_rows} rows",
            )
        _check_system_types(_logical_schema(file), vocabulary, sequence_number)
        hasher = _hasher_for(file, threads)
        next_offset = claimed.offset_interval.start
        for batch in _iter_batches(file):
            _check_system_columns(batch, next_offset, vocabulary, system_time, sequence_number)
            _check_values(batch, next_offset, sequence_number)
            hasher.update(batch)
            keep(batch)
            next_offset += batch.num_rows
        if next_offset != claimed.offset_interval.end + 1:
            # The footer's count is one claim, what its row groups hold is another.
            raise RejectedError(
                "ROWS-2 one-row-per-offset",
                sequence_number=sequence_number,
                expected=f"{rows} rows",
                found=f"{next_offset - claimed.offset_interval.start} rows, and a footer that says {rows}",
            )
        found = hasher.digest()
    if found != claimed.logical_hash:
        raise RejectedError(
            "ROWS-5 logical-hash", sequence_number=sequence_number, expected=claimed.logical_hash, found=found
        )


def read_slice(path: Source) -> pa.Table:
    """Read a whole slice that has passed ``check_slice``."""
    with open_slice(path) as file:
        return pa.Table.from_batches(_iter_batches(file), file.schema_arrow)


def iter_rows(path: Source) -> Iterator[pa.RecordBatch]:
    """Read a slice that has passed ``check_slice`` batch by batch."""
    with open_slice(path) as file:
        yield from _iter_batches(file)


def read_last_rows(path: Source, count: int) -> pa.Table:
    """Read the last ``count`` rows of a slice that has passed ``check_slice``, or all if there are fewer.

    A small file can stand for more rows, or longer texts, than fit into memory: only some batches are held at a time.
    """
    with open_slice(path) as file:
        groups: list[int] = []
        rows = 0
        for number in reversed(range(file.metadata.num_row_groups)):
            if rows >= count:
                break
            groups.insert(0, number)
            rows += file.metadata.row_group(number).num_rows
        kept: deque[pa.RecordBatch] = deque()
        held = 0
        for batch in _iter_batches(file, groups):
            kept.append(batch)
            held += batch.num_rows
            while held - kept[0].num_rows >= count:
                held -= kept.popleft().num_rows
        table = pa.Table.from_batches(kept, kept[0].schema if kept else file.schema_arrow)
        return table.slice(max(0, held - count))


def hash_values_of(path: Source) -> Multihash:
    """Hash the rows of a slice with our injective hash, which has none of the collisions of ``arrow0-sha3-256``.

    Raises:
        MalformedError: The file is no Parquet file.
        UnsupportedError: A column has a type that the hash does not define.
    """
    return summarise(path).root


def summarise(path: Source, *, max_leaves: int = sys.maxsize) -> TableSummary:
    """Compute all hashes of a slice's v1 tree.

    Args:
        path: The slice.
        max_leaves: Of all columns together; few bytes can stand for very many rows.

    Raises:
        MalformedError, UnsupportedError: As ``hash_values_of``; or it has more leaves.
    """
    with open_slice(path) as file, ThreadPoolExecutor(HASHING_THREADS) as threads:
        hasher = LogicalHasher(file.schema_arrow, executor=threads)
        for batch in _iter_batches(file):
            hasher.update(batch)
            if hasher.leaf_count > max_leaves:
                break
        if hasher.leaf_count > max_leaves:
            raise UnsupportedError("size of a hash tree", found="more leaves", supported=f"{max_leaves} leaves")
        return hasher.summary()


def _check_system_types(schema: pa.Schema, vocabulary: Vocabulary, sequence_number: int) -> None:
    """Check that the columns that are looked into row by row can be (ROWS-1); a foreign schema may have others."""
    wanted = {
        vocabulary.offset: ("one integer column", pa.types.is_integer),
        vocabulary.op: ("one integer column", pa.types.is_integer),
        vocabulary.system_time: ("one timestamp column", pa.types.is_timestamp),
    }
    for name, (expected, is_right) in wanted.items():
        types = [field.type for field in schema if field.name == name]
        if len(types) != 1 or not is_right(types[0]):
            raise RejectedError(
                f"ROWS-1 system-columns-are-there ('{name}')",
                sequence_number=sequence_number,
                expected=expected,
                found=", ".join(map(str, types)) or "none",
            )


def _check_system_columns(
    batch: pa.RecordBatch, next_offset: int, vocabulary: Vocabulary, system_time: Timestamp, sequence_number: int
) -> None:
    for name in (vocabulary.offset, vocabulary.op, vocabulary.system_time):
        if batch.column(name).null_count:
            raise RejectedError(
                f"ROWS-1 system-columns-hold-values ('{name}')",
                sequence_number=sequence_number,
                expected="a value in every row",
                found=f"{batch.column(name).null_count} nulls from offset {next_offset} on",
            )
    offsets = np.asarray(batch.column(vocabulary.offset))
    expected = next_offset + np.arange(batch.num_rows)
    if not np.array_equal(offsets, expected):
        position = int(np.argmax(offsets != expected))
        raise RejectedError(
            "ROWS-2 offsets-are-the-interval",
            sequence_number=sequence_number,
            expected=int(expected[position]),
            found=int(offsets[position]),
        )
    unit = batch.column(vocabulary.system_time).type.unit  # that of a foreign schema
    times = np.asarray(batch.column(vocabulary.system_time).cast(pa.int64()))
    differs = times // _TICKS_PER_MS[unit] != system_time.unix_ms // _MS_PER_TICK[unit]
    if differs.any():
        position = int(np.argmax(differs))
        raise RejectedError(
            f"ROWS-3 system-time-is-the-block's (offset {next_offset + position})",
            sequence_number=sequence_number,
            expected=system_time.truncated_to_ms(),
            found=f"{int(times[position])} {unit} since 1970",
        )
    operations = np.asarray(batch.column(vocabulary.op))
    unknown = (operations < OPERATIONS.start) | (operations >= OPERATIONS.stop)
    if unknown.any():
        position = int(np.argmax(unknown))
        raise RejectedError(
            f"ROWS-4 operation-is-known (offset {next_offset + position})",
            sequence_number=sequence_number,
            expected="0 to 3",
            found=int(operations[position]),
        )


def _check_values(batch: pa.RecordBatch, next_offset: int, sequence_number: int) -> None:
    """Check that what stands in cells is of their column's type: readers differ about what is not (ROWS-8)."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise RejectedError(
                f"ROWS-8 values-are-of-their-type ('{name}')",
                sequence_number=sequence_number,
                expected=f"values of the type {column.type}",
                found=f"{_first_line(error)}, from offset {next_offset} on",
            ) from error


def _logical_schema(file: pq.ParquetFile) -> pa.Schema:
    return reader_schema(file.schema_arrow, file.metadata.metadata)


def _hasher_for(file: pq.ParquetFile, threads: ThreadPoolExecutor) -> Arrow0Hasher:
    metadata = file.metadata
    return Arrow0Hasher(
        _logical_schema(file),
        executor=threads,
        row_group_rows=[metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)],
    )


def open_slice(path: Source, *, as_dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a Parquet file; only its footer is read.

    Args:
        path: The file.
        as_dictionaries: Columns of texts that are read as places in a dictionary.

    Raises:
        MalformedError: It is none.
    """
    try:
        source = pa.BufferReader(path) if isinstance(path, pa.Buffer) else path
        file = pq.ParquetFile(source, memory_map=True, read_dictionary=[*as_dictionaries])
        _read_texts(file.schema_arrow)  # made when it is asked for, and a hostile one fails then
    except MemoryError:
        raise  # says nothing about the form of the file
    except _UNREADABLE as error:
        raise MalformedError("Parquet file", where=getattr(path, "name", None), found=_first_line(error)) from error
    return file


def _read_texts(schema: pa.Schema) -> None:
    """Fail now where a name or a zone is no UTF-8, and not wherever it is first looked at."""
    pending = list(schema)
    while pending:
        field = pending.pop()
        _ = field.name, getattr(field.type, "tz", None)
        if pa.types.is_struct(field.type):
            pending += list(field.type)
        elif pa.types.is_map(field.type):
            pending += [field.type.key_field, field.type.item_field]
        elif hasattr(field.type, "value_field"):
            pending.append(field.type.value_field)


def rows_at_once(metadata: pq.FileMetaData) -> int:
    """Say how many rows of a file to read at once, by what its footer says of their size."""
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    row_bytes = sum(max(0, group.total_byte_size) for group in groups) // max(1, metadata.num_rows)
    rows: int = _BATCH_BYTES // max(1, row_bytes)
    return min(BATCH_ROWS, max(_FEWEST_ROWS, rows - rows % _FEWEST_ROWS))


def iter_columns(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read some columns of a slice that has passed ``check_slice`` batch by batch; others may be in the batches, too.

    Raises:
        MalformedError: As ``read_slice``.
    """
    return _iter_batches(file, columns=columns)


def _iter_batches(
    file: pq.ParquetFile, groups: Iterable[int] | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read rows the one way in which all code here reads them, so that nobody sees others than were checked.

    Each row group is read by itself: what a reader of several finds in one may depend on those before it.

    Raises:
        MalformedError: They cannot be read, or a row group has another number of rows than it says.
    """
    try:
        chosen = range(file.metadata.num_row_groups) if groups is None else groups
        yield from iter_ahead(_iter_groups(file, chosen, columns))
    except MemoryError:
        raise
    except _UNREADABLE as error:
        raise MalformedError("Parquet file", found=_first_line(error)) from error


def _iter_groups(
    file: pq.ParquetFile, groups: Iterable[int], columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    batch_rows = rows_at_once(file.metadata)
    for group in groups:
        rows = 0
        for batch in file.iter_batches(batch_size=batch_rows, row_groups=[group], columns=columns, use_threads=False):
            rows += batch.num_rows
            yield batch
        stated = file.metadata.row_group(group).num_rows
        if rows != stated:
            raise MalformedError("Parquet file", where=f"row group {group}", expected=f"{stated} rows", found=rows)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
