"""The rows of a dataset behind an offset, as a file that another one is fed from (ING-43)."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

import pyarrow as pa
from pyarrow import compute, parquet

from odf_engines.reading.row_writing import GroupWriter
from odf_engines.reading.slices import Source, open_slice
from odf_protocol.errors import RejectedError
from odf_protocol.events import DataSchema
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.vocabulary import Vocabulary

_BATCH_ROWS: Final = 1024  # guess: of long texts that a small file repeats, some megabytes


def write_new_rows(
    files: Iterable[Source],
    schema: DataSchema,
    words: Vocabulary,
    target: BinaryIO,
    *,
    after: int,
    name: str,
    has_operations: bool,
) -> None:
    """Write the rows behind an offset into one file, without the columns that whoever takes them makes itself.

    Args:
        files: Files of rows, one at least with such a row.
        schema: In force behind the last of them; columns that came later are null in rows before.
        words: What their system columns are called.
        target: Gets the new file.
        after: The offset.
        name: Of the dataset, for messages.
        has_operations: Their operations are the column ``op``.

    Raises:
        RejectedError: There are corrections, and no column for them.
    """
    left_out = {words.offset, words.system_time, *(() if has_operations else [words.op])}
    columns = [each for each in rows_schema_of(schema) if each.name not in left_out]
    written = pa.schema([each.with_name("op") if each.name == words.op else each for each in columns])
    with parquet.ParquetWriter(target, written) as writer:
        groups = GroupWriter(writer, written)
        for batch in _iter_batches(files):
            found = batch.filter(compute.greater(batch.column(words.offset), after))
            if not has_operations and any(found.column(words.op).to_pylist()):
                expected = "rows that are appended; with ?op=true operations are a column, for ChangelogStream"
                raise RejectedError("ING-43 no-lost-corrections", expected=expected, found=f"corrections in '{name}'")
            there, count = {*found.schema.names}, found.num_rows
            values = [found.column(each.name) if each.name in there else pa.nulls(count, each.type) for each in columns]
            groups.take(pa.RecordBatch.from_arrays(values, written.names))
        groups.flush()


def _iter_batches(files: Iterable[Source]) -> Iterator[pa.RecordBatch]:
    for each in files:
        with open_slice(each) as file:
            yield from file.iter_batches(_BATCH_ROWS)
