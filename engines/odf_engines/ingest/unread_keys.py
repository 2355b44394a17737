"""Keys of rows that a batch has and that could not be taken: what a snapshot says of these it does not lack.

Source: clause ING-48 in ``spec/ingest.md``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odf_engines.contract import IngestRequest
from odf_engines.ingest.columns import Columns
from odf_engines.ingest.read import ReadResult
from odf_engines.ingest.validated import Validated
from odf_engines.records.carriers import carrier_of
from odf_engines.records.source_records import ROW_GROUP_ROWS, value_name
from odf_engines.strategies.registry import strategy_of


@dataclass(frozen=True, slots=True)
class UnreadKeys:
    """Keys whose current rows stay.

    Attributes:
        path: Parquet file with the columns of the key, in carrier types, by their value names; None: there are none.
        has_unknown: The key of another bad row cannot be read, so it may be that of any row that is missing.
    """

    path: Path | None = None
    has_unknown: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept for them."""
        return self.path is None and not self.has_unknown


NO_KEYS = UnreadKeys()


def find_unread_keys(
    request: IngestRequest,
    columns: Columns,
    result: ReadResult,
    validated: Validated | None,
    target: Path,
) -> UnreadKeys:
    """Find the keys of the rows that did not come as far as the merge.

    Args:
        request: Of the ingest; only a snapshot of rows that are there already takes any back.
        columns: Of the rows that are merged.
        result: What was read, and converted.
        validated: What validators said.
        target: File to write.
    """
    if not strategy_of(request.merge, request.strategy).retracts_missing or request.state_path is None:
        return NO_KEYS
    names = [value_name(index) for index in columns.keys]
    schema = pa.schema([(value_name(i), carrier_of(columns.schema.field(i).type)) for i in columns.keys])
    records = result.records
    has_unknown = bool(records.broken) or (request.prepared is not None and request.prepared.quarantine is not None)
    files = [each for each in (records.unconverted, records.failed) if each is not None]
    # What stands before converters has other columns.
    if records.unconverted is not None and request.converters:
        has_unknown, files = True, files[1:]
    found = _Keys(schema, target)
    for batch in _iter_all(files, validated):
        found.add(batch, names)
    return found.close(has_unknown=has_unknown)


def has_null(path: Path, name: str) -> bool:
    """Say whether a column of a file has a null, or the file lacks it and has rows."""
    with pq.ParquetFile(path) as file:
        if name not in file.schema_arrow.names:
            return bool(file.metadata.num_rows)
        return any(batch.column(0).null_count for batch in file.iter_batches(columns=[name]))


def _iter_all(files: list[Path], validated: Validated | None) -> Iterator[pa.RecordBatch]:
    for path in files:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=ROW_GROUP_ROWS)
    if validated is not None and validated.rows.bad_count:
        bad = pa.array([number for number, _ in validated.rows.iter_bad()], pa.int64())
        with pq.ParquetFile(validated.file.path) as file:
            for batch in file.iter_batches(batch_size=ROW_GROUP_ROWS):
                yield batch.filter(pc.is_in(batch.column(validated.file.number), bad))


def _as_carrier(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        # As a slice has it: what is finer is dropped towards the past (ING-5).
        column = pc.floor_temporal(column, unit="millisecond")
    return column.cast(kind)


class _Keys:
    """Writes keys that are whole, and notes whether one was not."""

    def __init__(self, schema: pa.Schema, target: Path) -> None:
        self._schema, self._target = schema, target
        self._writer: pq.ParquetWriter | None = None
        self._has_unknown = False

    def add(self, batch: pa.RecordBatch, names: list[str]) -> None:
        if not batch.num_rows:
            return
        if set(names) - set(batch.schema.names):
            self._has_unknown = True
            return
        # A value that could not be read is null, and so may be one that was not sent: neither names a row.
        is_whole = reduce(pc.and_, (pc.is_valid(batch.column(name)) for name in names))
        keys = batch.select(names).filter(is_whole)
        self._has_unknown = self._has_unknown or keys.num_rows < batch.num_rows
        if keys.num_rows:
            self._writer = self._writer or pq.ParquetWriter(self._target, self._schema, compression="lz4")
            arrays = [_as_carrier(keys.column(field.name), field.type) for field in self._schema]
            self._writer.write_batch(pa.record_batch(arrays, schema=self._schema), ROW_GROUP_ROWS)

    def close(self, *, has_unknown: bool) -> UnreadKeys:
        if self._writer is not None:
            self._writer.close()
        return UnreadKeys(None if self._writer is None else self._target, has_unknown or self._has_unknown)
