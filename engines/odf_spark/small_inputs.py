"""The rows of a small input that are in force, found here and handed to Spark as one file.

Most steps bring a few rows to a few that were there. Spark would read each of the many small slices several times, with
a broadcast and a shuffle, to find out which rows were taken again; Arrow does it in a millisecond. The rows are the
same either way, and their order is none (VIEW-2). Columns whose values are not compared bit for bit, or have parts, are
left to Spark, and so is whatever does not look as it should.

Source: clause VIEW-2 in ``spec/extensions/maintained-views.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_protocol.errors import UnsupportedError
from odf_protocol.events import (
    DataSchema,
    DataType,
    DataTypeBinary,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeInt8,
    DataTypeInt16,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
)
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.vocabulary import Vocabulary
from odf_spark.changelog import APPEND, CORRECT_TO
from odf_spark.slices import check_footers

RowsRead = dict[str, int | None]
"""What was read of an input: ``rows``, and ``first`` and ``last`` offset."""

NOTHING_READ: RowsRead = {"rows": 0, "first": None, "last": None}

_COMPARED_BY_BITS: Final = (
    DataTypeBinary, DataTypeBool, DataTypeDate, DataTypeDecimal, DataTypeInt8, DataTypeInt16, DataTypeInt32,
    DataTypeInt64, DataTypeString, DataTypeTimestamp,
)  # fmt: skip
_MAX_FILE_BYTES: Final = 8 * 1024 * 1024  # guess: a task of Spark would read as much
_MAX_ROWS: Final = 200_000  # guess: they are grouped in a tenth of a second
_MAX_BYTES: Final = 64 * 1024 * 1024  # guess: of values; a file of repeated ones holds many times its size
_MAX_KEPT: Final = 2_000  # guess: slices of one request that are kept for its second result, of all inputs
_KEPT_BYTES: Final = 128 * 1024  # guess: of each; many small ones cost, a few large ones are read again
_BATCH_ROWS: Final = 128
"""Rows that are unpacked before their size is known: a file of some kilobytes may hold the same megabytes in each."""


@dataclass(frozen=True, slots=True)
class Work:
    """The folder of one request, and what is known of its inputs meanwhile.

    Attributes:
        folder: For files of ours.
        read: What was read here of an input: by alias and the last offset that counted.
        rows: Of slices that were read here, by slice and columns: a view reads most of them for two results.
        checked: Slices that Spark may read (ENGINE-28).
        arrivals: When rows came, by what of which input was read (``arrivals``).
    """

    folder: Path
    read: dict[tuple[str, int], RowsRead] = field(default_factory=dict)
    rows: dict[tuple[Path, pa.Schema], pa.Table] = field(default_factory=dict)
    checked: set[Path] = field(default_factory=set)
    arrivals: dict[object, Any] = field(default_factory=dict)

    def check(self, slices: Sequence[Path]) -> None:
        """Check the footers of slices that Spark is about to read; raises what ``check_footers`` does."""
        unchecked = [path for path in slices if path not in self.checked]
        check_footers(unchecked)
        self.checked.update(unchecked)

    def keep(self, path: Path, rows: pa.Table) -> None:
        """Keep the rows of a file of ours, with the columns that it has, unless they are many."""
        if rows.num_rows <= _MAX_ROWS and rows.nbytes <= _MAX_BYTES:
            self.rows[path, rows.schema] = rows


def write_folded(
    target: Path,
    slices: Sequence[Path],
    data: DataSchema,
    vocabulary: Vocabulary,
    upto: int,
    *,
    event_times_us: tuple[int, int] | None,
    without: npt.NDArray[np.int64] | None,
    work: Work,
) -> RowsRead | None:
    """Write the current rows after an offset to a file, with the offset at which each was given last.

    Args:
        target: File that does not exist yet.
        slices: Of one input, from its first row on.
        data: Columns of its rows.
        vocabulary: Of the input.
        upto: Last offset that counts.
        event_times_us: Only rows from the first of these times on and before the second; None for all.
        without: Offsets of rows that do not count, whether they give or take.
        work: Of this request.

    Returns:
        The rows that were read: all up to ``upto``. None: nothing was written, as the input is not small, or not plain.
    """
    if not may_be_small(slices, data):
        return None
    try:
        rows = _read(slices, columns_read(data, vocabulary), work.rows)
    except (UnsupportedError, pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError):
        return None  # Spark says what is wrong with it, or reads it all the same
    if rows is None:
        return None
    rows = rows.filter(pc.less_equal(rows.column(vocabulary.offset), upto))
    extremes = pc.min_max(rows.column(vocabulary.offset)).as_py()
    read: RowsRead = {"rows": rows.num_rows, "first": extremes["min"], "last": extremes["max"]}
    rows = rows.filter(_counting(rows, vocabulary, event_times_us, without))
    folded = _fold(rows.drop_columns([vocabulary.op]), rows.column(vocabulary.op))
    pq.write_table(folded, target, compression="none")
    return read


def may_be_small(slices: Sequence[Path], data: DataSchema) -> bool:
    """Say whether an input may be folded here; where it may not, nor may it with more slices."""
    is_plain = all(_is_plain(each.type) for each in data.fields)
    return is_plain and sum(path.stat().st_size for path in slices) <= _MAX_FILE_BYTES


def columns_read(data: DataSchema, vocabulary: Vocabulary) -> pa.Schema:
    """Return the columns by which rows are folded: of the data, then offset and operation; all may be null.

    Raises:
        UnsupportedError: Arrow has no such type.
    """
    kept = [each.with_nullable(nullable=True) for each in rows_schema_of(data)]
    return pa.schema([*kept, pa.field(vocabulary.offset, pa.int64()), pa.field(vocabulary.op, pa.int32())])


def _is_plain(data_type: DataType) -> bool:
    kind = data_type.inner if isinstance(data_type, DataTypeOption) else data_type
    return isinstance(kind, _COMPARED_BY_BITS)


def _read(slices: Sequence[Path], wanted: pa.Schema, known: dict[tuple[Path, pa.Schema], pa.Table]) -> pa.Table | None:
    """Read columns of all slices; None where it is more than memory should hold."""
    tables: list[pa.Table] = []
    rows = size_bytes = 0
    for path in slices:
        table = known.get((path, wanted))
        if table is None:
            table = _read_slice(path, wanted, _MAX_ROWS - rows, _MAX_BYTES - size_bytes)
        if table is None or (rows := rows + table.num_rows) > _MAX_ROWS:
            return None
        size_bytes += table.nbytes
        if (path, wanted) not in known and len(known) < _MAX_KEPT and table.nbytes <= _KEPT_BYTES:
            known[path, wanted] = table
        tables.append(table)
    return pa.concat_tables(tables)


def _read_slice(path: Path, wanted: pa.Schema, max_rows: int, max_bytes: int) -> pa.Table | None:
    batches: list[pa.RecordBatch] = []
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=wanted.names):
            batches.append(batch.select(wanted.names).cast(wanted))
            max_rows, max_bytes = max_rows - batch.num_rows, max_bytes - batch.nbytes
            if max_rows < 0 or max_bytes < 0:
                return None
    return pa.Table.from_batches(batches, wanted)


def _counting(
    rows: pa.Table,
    vocabulary: Vocabulary,
    event_times_us: tuple[int, int] | None,
    without: npt.NDArray[np.int64] | None,
) -> pa.BooleanArray:
    counting = pc.is_valid(rows.column(vocabulary.op))
    if event_times_us is not None:
        times = rows.column(vocabulary.event_time).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        first, end = event_times_us
        counting = pc.and_(counting, pc.and_(pc.greater_equal(times, first), pc.less(times, end)))
    if without is not None and without.size:
        counting = pc.and_(counting, pc.invert(pc.is_in(rows.column(vocabulary.offset), pa.array(without))))
    return counting


def _fold(rows: pa.Table, operations: pa.ChunkedArray) -> pa.Table:
    """Return the rows that are in force; the last column is the offset of each."""
    given = pc.is_in(operations, pa.array([APPEND, CORRECT_TO], pa.int32()))
    if pc.all(given, min_count=0).as_py():
        return rows
    names, offsets = rows.column_names, rows.column(rows.num_columns - 1)
    keys = [f"k{position}" for position in range(rows.num_columns - 1)]
    reported = rows.drop_columns(names[-1:]).rename_columns(keys)
    reported = reported.append_column("count", pc.if_else(given, 1, -1)).append_column("is taken", pc.invert(given))
    reported = reported.append_column("given", pc.if_else(given, offsets, None))
    reported = reported.append_column("row", pa.array(np.arange(rows.num_rows)))
    asked = [("count", "sum"), ("is taken", "any"), ("given", "max"), ("row", "list")]
    groups = reported.group_by(keys, use_threads=False).aggregate(asked)
    # Rows like no row that was taken are in force as they stand, each with its own offset.
    untouched = groups.filter(pc.invert(groups.column("is taken_any"))).column("row_list")
    left = groups.filter(groups.column("is taken_any")).filter(pc.field("count_sum") > 0)
    repeated = np.repeat(np.arange(left.num_rows), np.asarray(left.column("count_sum")))
    left = left.take(pa.array(repeated)).select([*keys, "given_max"]).rename_columns(names)
    return pa.concat_tables([rows.take(pc.list_flatten(untouched)), left.cast(rows.schema)])
