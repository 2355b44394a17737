"""A large result in order without an exchange of its rows: sorted subsets that turn out to follow one another.

Rows of an input mostly come in the order of their event times, and so does what a query makes of each of its files in
turn. What comes of each part of a file is sorted by itself, unless it is in order. Where no two of these *runs*
overlap, one behind the other they are the whole in order. Where two do, as is seen at once, nothing was given yet, and
Spark sorts all of it.

Source: clause VIEW-7 in ``spec/extensions/maintained-views.md``.
"""

import re
import shutil
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from odf_spark.chunks import CHUNK_BYTES, bound_rows, collect_chunks
from odf_spark.java_side import query_execution

_PLAIN: Final = re.compile(
    r"boolean|tinyint|smallint|int|bigint|date|timestamp|timestamp_ntz|string|binary|decimal\(\d+,\d+\)"
)
_EXCHANGE: Final = re.compile(r"(?<!Broadcast)Exchange")
# One part of a file is a task; a file is never read in one task with another one.
_ONE_PART_A_TASK: Final = {
    "spark.sql.files.maxPartitionBytes": str(CHUNK_BYTES),
    "spark.sql.files.openCostInBytes": str(CHUNK_BYTES),
}

_Place = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows in order, in a file, and the places of the first and the last of them in the order."""

    path: Path
    first: _Place
    last: _Place


def has_plain_columns(rows: DataFrame) -> bool:
    """Say whether values of all columns are equal only if they are the same bits, and have an order known here."""
    return all(_PLAIN.fullmatch(each.dataType.simpleString()) for each in rows.schema.fields)


def find_runs(
    rows: DataFrame, order: Sequence[str], folder: Path, *, max_rows: int, chunk_rows: int
) -> Iterator[pa.Table] | None:
    """Compute a result with plain columns; None where its runs overlap, or rows are exchanged to compute it.

    Args:
        rows: The result.
        order: Columns; rows that are equal in all of them are the same.
        folder: Is made, and gone when all rows were given.
        max_rows: Of the result.
        chunk_rows: Of a table that is given, at most.

    Raises:
        PySparkException, LimitExceededError: The query failed on a row; or there are more rows.
    """
    spark = rows.sparkSession
    before = {name: spark.conf.get(name) for name in _ONE_PART_A_TASK}
    for name, value in _ONE_PART_A_TASK.items():
        spark.conf.set(name, value)
    try:
        runs = None if _is_exchanged(rows) else _store_runs(rows, order, folder, max_rows)
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))
    return None if runs is None else _read(runs, folder, chunk_rows)


def _is_exchanged(rows: DataFrame) -> bool:
    """Say whether rows go between tasks. A column may be called so too, which costs a sort and nothing else."""
    return _EXCHANGE.search(str(query_execution(rows).executedPlan().toString())) is not None


def sort_rows(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """Return rows with plain columns in the order of Spark: nulls first, texts by their bytes."""
    if _is_in_order(rows, order):
        return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending", "at_start") for name in order]))


def _is_in_order(rows: pa.Table, order: Sequence[str]) -> bool:
    """Say whether no row is before the one that it follows, as in most parts of files; that costs little."""
    count = max(rows.num_rows - 1, 0)
    is_open = pa.array(np.ones(count, dtype=bool))  # of a row and the next one, equal in all columns so far
    for name in order:
        column = rows.column(name).combine_chunks()
        one, next_one = column.slice(0, count), column.slice(1)
        is_less = pc.or_(pc.fill_null(pc.less(one, next_one), False), pc.and_(one.is_null(), next_one.is_valid()))
        is_same = pc.or_(pc.fill_null(pc.equal(one, next_one), False), pc.and_(one.is_null(), next_one.is_null()))
        if pc.any(pc.and_not(is_open, pc.or_(is_less, is_same)), min_count=0).as_py():
            return False
        is_open = pc.and_(is_open, is_same)
        if not pc.any(is_open, min_count=0).as_py():
            return True
    return True


def _store_runs(parts: DataFrame, order: Sequence[str], folder: Path, max_rows: int) -> list[_Run] | None:
    folder.mkdir()
    runs: list[_Run] = []
    chunks = bound_rows(collect_chunks(parts, parts.schema), max_rows)
    for number, chunk in enumerate(chunks):
        if not chunk.num_rows:
            continue
        rows = sort_rows(chunk, order)
        run = _Run(folder / f"{number}.arrow", _place(rows, 0, order), _place(rows, rows.num_rows - 1, order))
        place = bisect_right(runs, run.first, key=lambda each: each.first)
        if (place and runs[place - 1].last > run.first) or (place < len(runs) and run.last > runs[place].first):
            shutil.rmtree(folder)
            return None
        with pa.ipc.new_file(run.path, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
            file.write_table(rows)
        runs.insert(place, run)
    return runs


def _place(rows: pa.Table, position: int, order: Sequence[str]) -> _Place:
    """Return a row's place in the order of Spark: nulls first, texts by their bytes."""
    found = []
    for name in order:
        value = rows.column(name).slice(position, 1)
        if pa.types.is_date32(value.type):
            value = value.cast(pa.int32())
        elif pa.types.is_timestamp(value.type):
            value = value.cast(pa.int64())
        elif pa.types.is_string(value.type):
            value = value.cast(pa.binary())
        (known,) = value.to_pylist()
        found.append((0,) if known is None else (1, known))
    return tuple(found)


def _read(runs: Sequence[_Run], folder: Path, chunk_rows: int) -> Iterator[pa.Table]:
    try:
        for run in runs:
            with pa.ipc.open_file(run.path) as file:
                for number in range(file.num_record_batches):
                    rows = pa.Table.from_batches([file.get_batch(number)])
                    for start in range(0, rows.num_rows, chunk_rows):
                        yield rows.slice(start, chunk_rows)
            run.path.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
