"""Rows of slices that others wrote, written anew by this node's own writer; a part of the program ``program``.

What leaves here has the rows that were checked, in the types that the dataset's schema states, and nothing else of the
file: no statistics, notes, indexes or encodings that somebody else chose.

Source: clause ROWS-9 in ``spec/extensions/acceptance.md``.
"""

from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from odf_engines.host.slices import open_slice_file
from odf_engines.reading.slices import Source, check_slice
from odf_protocol.events import DataSchema, DataSlice
from odf_protocol.schema_arrow import rows_schema_of
from odf_protocol.timestamp import Timestamp
from odf_protocol.vocabulary import Vocabulary

_GROUP_ROWS: Final = 131_072  # guess: as the rows of a step are written
_GROUP_BYTES: Final = 32 * 1024 * 1024  # guess: a group is read in one piece


class GroupWriter:
    """Writes batches as row groups of bounded size."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer = writer
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def take(self, batch: pa.RecordBatch) -> None:
        """Write a batch, at once or with those that follow."""
        self._held.append(batch.cast(self._schema))
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._held), row_group_size=_GROUP_ROWS)
        self._held, self._rows, self._bytes = [], 0, 0


def rewrite_slice(
    path: Source,
    target: BinaryIO,
    claimed: DataSlice,
    *,
    schema: DataSchema,
    vocabulary: Vocabulary,
    system_time: Timestamp,
    sequence_number: int,
) -> None:
    """Check every row of a slice, as ``check_slice`` does and in the same read, and write the rows to ``target``.

    What ``target`` got counts only once nothing was raised.

    Raises:
        RejectedError, MalformedError: As ``check_slice``.
    """
    arrow = rows_schema_of(schema)
    with open_slice_file(target, arrow) as writer:
        groups = GroupWriter(writer, arrow)
        check_slice(
            path,
            claimed,
            schema=schema,
            vocabulary=vocabulary,
            system_time=system_time,
            sequence_number=sequence_number,
            keep=groups.take,
        )
        groups.flush()
