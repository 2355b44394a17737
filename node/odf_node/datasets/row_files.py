"""Files of rows that this node or an engine of it wrote, read with Arrow."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_protocol.cell_values import cell_value

_BATCH_ROWS = 512  # guess: of rows that may be long texts


def read_table(path: Path) -> pa.Table:
    """Read a file; Arrow's own would load all that data sets of many files need, and pandas where it is."""
    with pq.ParquetFile(path) as file:
        return file.read()


def iter_kept(path: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of an entry of quarantine."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            yield from batch.to_pylist()


def iter_given_names(path: Path) -> Iterator[str]:
    """Read the names of columns in the rows of an entry of quarantine; some more than once."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=["columns"]):
            yield from pc.unique(pc.struct_field(pc.list_flatten(batch.column(0)), "name")).to_pylist()


def read_first(path: Path, most: int, names: tuple[str, ...] | None = None) -> tuple[dict[str, Any], ...]:
    """Read the first rows of a file as JSON has them, or these columns of them."""
    with pq.ParquetFile(path) as file:
        first = next(file.iter_batches(batch_size=most, columns=names and [*names]), None)
        return () if first is None else plain_rows([first])


def plain_rows(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, Any], ...]:
    """Give rows as JSON has them."""
    return tuple(
        {name: cell_value(column[index]) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        for batch in batches
        for index in range(batch.num_rows)
    )


def read_events(paths: Iterable[Path], schema: pa.Schema, offset: str, after: int) -> pa.Table:
    """Read the events behind an offset; columns may have been added since the first file."""
    parts = [pq.read_table(path) for path in paths]
    if not parts:
        return schema.empty_table()
    table = pa.concat_tables([schema.empty_table(), *parts], promote_options="permissive").select(schema.names)
    return table.filter(pc.greater(table.column(offset), after)) if after >= 0 else table
