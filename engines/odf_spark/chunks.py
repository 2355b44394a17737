"""The rows of a query that keeps the order of its input, handed over piece by piece.

A piece is what one task of Spark computes from some row groups of the input. It goes from Java to Python as Arrow
batches, which costs a fraction of storing it as a file and reading that again, and the next pieces are computed while
one is being written. A piece is held in memory whole, so this is for inputs whose row groups are of bounded size; the
rows of others are stored by Spark and read in parts.

Where pieces end has no influence on the rows.

Source: clauses ENGINE-11, ENGINE-12; MAP-2 in ``spec/extensions/changelog-maps.md``.
"""

import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from odf_engines.errors import LimitExceededError
from odf_spark.changelog import APPEND
from odf_spark.java_side import arrow_batches, collect_partition, tasks_at_once

_Result = TypeVar("_Result")

CHUNK_BYTES = 8 * 1024 * 1024  # guess: of a file; some row groups of usual size
MAX_GROUP_BYTES = 64 * 1024 * 1024  # guess: of values; a query may make some times as much of it in half a gigabyte
BATCH_ROWS = 65_536  # guess: larger ones were not faster


def fit_in_memory(slices: Sequence[Path]) -> bool:
    """Whether each piece of these Parquet files can be held in memory."""
    for path in slices:
        with pq.ParquetFile(path) as file:
            groups = range(file.metadata.num_row_groups)
            if any(file.metadata.row_group(number).total_byte_size > MAX_GROUP_BYTES for number in groups):
                return False
    return True


def collect_chunks(rows: DataFrame, columns: StructType) -> Iterator[pa.Table]:
    """Compute the partitions of a query, as many at once as there are cores; one at least, in their order.

    Raises:
        PySparkException: Of computing a piece; the ones before it were handed over.
    """
    # Planned and compiled once; each piece is a job of its own on it, so that none waits in Java to be taken.
    batches = arrow_batches(rows, BATCH_ROWS)
    schema = to_arrow_schema(columns, timezone="UTC")
    numbers = range(batches.getNumPartitions())
    if not numbers:  # as of what Spark knows to have no rows before it reads any
        yield schema.empty_table()
    chunks = (partial(_collect, rows, batches, number, schema) for number in numbers)
    yield from compute_ahead(chunks, tasks_at_once(rows.sparkSession) + 1)


def compute_ahead(calls: Iterable[Callable[[], _Result]], at_once: int) -> Iterator[_Result]:
    """Call functions in threads, as many at once, and give what they return in their order; no more is held."""
    running: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(at_once, "piece") as pool:
        try:
            for call in calls:
                if len(running) == at_once:
                    yield running.popleft().result()
                running.append(pool.submit(call))
            while running:
                yield running.popleft().result()
        finally:
            for chunk in running:
                chunk.cancel()


def store_chunks(rows: DataFrame, folder: Path, max_rows: int) -> Iterator[pa.Table]:
    """Let Spark store the rows, then read them in parts of ``max_rows``; ``folder`` is made and removed."""
    try:
        rows.write.parquet(str(folder))
        for path in sorted(folder.glob("part-*.parquet")):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=max_rows):
                    yield pa.Table.from_batches([batch])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def bound_rows(chunks: Iterable[pa.Table], max_rows: int) -> Iterator[pa.Table]:
    """Pass pieces on as long as they have no more rows together.

    Raises:
        LimitExceededError: They have.
    """
    count = 0
    for chunk in chunks:
        count += chunk.num_rows
        if count > max_rows:
            raise LimitExceededError("output_rows", allowed=max_rows, found=count)
        yield chunk


def iter_appended(
    rows: DataFrame, names: Sequence[str], max_rows: int
) -> Iterator[tuple[pa.Table, npt.NDArray[np.int64]]]:
    """Compute a query and yield its rows by all columns, under other names, and the operation of each: an append.

    Raises:
        PySparkException, LimitExceededError: As ``collect_chunks`` and ``bound_rows``.
    """
    for chunk in bound_rows(collect_chunks(rows.orderBy(*rows.columns), rows.schema), max_rows):
        if chunk.num_rows:
            yield chunk.rename_columns(names), np.full(chunk.num_rows, APPEND, dtype=np.int64)


def cut_even(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Cut rows anew into tables of ``rows`` rows each, but for the last; tables without rows are left out."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        held.append(table)
        count += table.num_rows
        if count >= rows:
            whole = pa.concat_tables(held)
            for start in range(0, count - rows + 1, rows):
                yield whole.slice(start, rows)
            held, count = [whole.slice(count - count % rows)], count % rows
    if count:
        yield pa.concat_tables(held)


def _collect(rows: DataFrame, batches: Any, number: int, schema: pa.Schema) -> pa.Table:
    messages = collect_partition(rows.sparkSession, batches, number)
    found = [pa.ipc.read_record_batch(pa.py_buffer(message), schema) for message in messages]
    return pa.Table.from_batches(found, schema)
