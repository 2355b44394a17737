"""Files of rows that an engine wrote or another node had, read in a sandbox (SANDBOX-17)."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odf_engines.reading.files import opened_rows, read_table
from odf_protocol.cell_values import cell_value

__all__ = ["iter_given_names", "iter_kept", "plain_rows", "read_events", "read_first", "read_table"]


def iter_kept(path: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of an entry of quarantine."""
    with opened_rows(path) as (_, batches):
        for batch in batches:
            yield from batch.to_pylist()


def iter_given_names(path: Path) -> Iterator[str]:
    """Read the names of columns in the rows of an entry of quarantine; some more than once."""
    with opened_rows(path, columns=["columns"]) as (_, batches):
        for batch in batches:
            yield from pc.unique(pc.struct_field(pc.list_flatten(batch.column(0)), "name")).to_pylist()


def read_first(path: Path, most: int, names: tuple[str, ...] | None = None) -> tuple[dict[str, Any], ...]:
    """Read the first rows of a file as JSON has them, or these columns of them."""
    with opened_rows(path, columns=names, most=most) as (_, batches):
        return plain_rows(batches)


def plain_rows(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, Any], ...]:
    """Give rows as JSON has them."""
    return tuple(
        {name: cell_value(column[index]) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        for batch in batches
        for index in range(batch.num_rows)
    )


def read_events(paths: Iterable[Path], schema: pa.Schema, offset: str, after: int) -> pa.Table:
    """Read the events behind an offset; columns may have been added since the first file."""
    parts = [read_table(path) for path in paths]
    if not parts:
        return schema.empty_table()
    table = pa.concat_tables([schema.empty_table(), *parts], promote_options="permissive").select(schema.names)
    return table.filter(pc.greater(table.column(offset), after)) if after >= 0 else table
