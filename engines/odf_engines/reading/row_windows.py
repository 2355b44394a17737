"""Some rows and some columns of a slice, as texts of bounded length: what a person looks at.

A cell may have many megabytes, a slice very many columns and rows, and few bytes can stand for all of them. So this
runs in the process that reads slices (``program``), reads no column that is not asked for, and cuts what it gives.

Source: clause PAGES-9 in ``spec/plug-ins/pages.md``.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.reading.slices import Source, open_slice
from odf_protocol.cell_values import cell_value
from odf_protocol.errors import MalformedError

_BATCH_BYTES: Final = 8 * 1024 * 1024  # guess: small beside what the process may use, large beside the work for a batch
_MAX_BATCH_ROWS: Final = 65_536


def read_window(path: Source, *, first: int, count: int, columns: list[str], max_characters: int) -> list[list[Any]]:
    """Read rows as texts.

    Args:
        path: The slice.
        first: The first row, from 0.
        count: How many; fewer are given where it has no more.
        columns: Their names, in the order to give; one that the slice lacks has no values.
        max_characters: Longer cells are cut there.

    Returns:
        A list a row; a cell is None where there is no value, else its text and how many characters it has whole.
    """
    rows: list[list[Any]] = []
    with open_slice(path) as file:
        for start, batch in _iter_batches(file, columns, first, first + count):
            part = batch.slice(max(0, first - start), first + count - max(first, start))
            found = [_column_of(part, name) for name in columns]
            rows += ([shorten_cell(column[row], max_characters) for column in found] for row in range(part.num_rows))
    return rows


def find_rows_like(path: Source, *, pattern: Source, row: int, keys: list[str], most: int) -> list[int]:
    """Find the rows whose key is that of one row of a slice.

    Args:
        path: Where to look.
        pattern: The slice with the row.
        row: Which, from 0.
        keys: The columns of the key.
        most: How many to find at most.

    Returns:
        Their numbers in the slice, from 0.

    Raises:
        MalformedError: The slice has no such row, or no such column.
    """
    with open_slice(pattern) as file:
        start, batch = next(_iter_batches(file, keys, row, row + 1), (0, None))
        if batch is None:
            raise MalformedError("slice", expected=f"row {row}", found="fewer rows")
        wanted = [_column_of(batch, name)[row - start] for name in keys]
    found: list[int] = []
    with open_slice(path) as file:
        for start, batch in _iter_batches(file, keys, 0, file.metadata.num_rows):
            same = _all_equal(batch, keys, wanted)
            found += (start + number for number in pc.indices_nonzero(same).to_pylist())
            if len(found) >= most:
                break
    return found[:most]


def _iter_batches(
    file: pq.ParquetFile, columns: list[str], first: int, end: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the batches with rows from ``first`` to before ``end``, and the number of the first row of each."""
    present = [name for name in columns if name in file.schema_arrow.names]
    group_start = 0
    for group in range(file.metadata.num_row_groups):
        about = file.metadata.row_group(group)
        start, group_start = group_start, group_start + about.num_rows
        if group_start <= first or start >= end:
            continue
        row_bytes = max(1, about.total_byte_size // max(1, about.num_rows))
        batch_rows = max(1, min(_MAX_BATCH_ROWS, _BATCH_BYTES // row_bytes, end - start))
        for batch in file.iter_batches(batch_size=batch_rows, row_groups=[group], columns=present, use_threads=False):
            if start + batch.num_rows > first:
                yield start, batch
            start += batch.num_rows
            if start >= end:
                break


def _column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)


def _all_equal(batch: pa.RecordBatch, keys: list[str], wanted: list[pa.Scalar]) -> pa.Array:
    same = pa.array([True] * batch.num_rows, pa.bool_())
    for name, value in zip(keys, wanted, strict=True):
        column = _column_of(batch, name)
        equal = pa.array([False] * batch.num_rows, pa.bool_())
        if not value.is_valid:
            equal = pc.is_null(column)
        else:
            with suppress(pa.ArrowException):  # a column that became another type has no equal value
                equal = pc.fill_null(pc.equal(column, value.cast(column.type)), False)
        same = pc.and_(same, equal)
    return same


def shorten_cell(cell: pa.Scalar, max_characters: int) -> tuple[str, int] | None:
    """Give the beginning of a cell's text, and how many characters it has whole; None: it has no value."""
    value = cell_value(cell)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:max_characters], len(text)
