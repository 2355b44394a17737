"""Rows of a dataset on their way through a Python process to Spark.

Source: clauses SPARKTABLE-7 and SPARKTABLE-11 in ``spec/plug-ins/spark-tables.md``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from odf_node.datasets.chains import iter_slices, load_view
from odf_spark_tables.places import TableLocation
from odf_spark_tables.versions import READ


@dataclass(frozen=True)
class FilePart(InputPartition):  # type: ignore[misc]  # pyspark is not looked into
    """A file, or the rows of a changelog from one offset up to the one before another.

    Attributes:
        path: Of the file.
        columns: Names of the columns, as Spark asks for them.
        offset: The column of offsets; empty: all rows.
        first: Offset of the first row.
        end: Offset behind the last one.
    """

    path: str
    columns: tuple[str, ...]
    offset: str = ""
    first: int = 0
    end: int = 0

    def read(self) -> Iterator[pa.RecordBatch]:
        """Read the rows in the types that Spark has."""
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(columns=[*self.columns]):
                rows = batch.select([*self.columns])
                if self.offset:
                    offsets = batch.column(self.offset)
                    rows = rows.filter(pc.and_(pc.greater_equal(offsets, self.first), pc.less(offsets, self.end)))
                yield rows.cast(_spark_schema(rows.schema))


class TableReader(DataSourceReader):  # type: ignore[misc]
    """Reads the current rows of a dataset, or its changelog."""

    def __init__(self, place: TableLocation, columns: Sequence[str], *, changes: bool) -> None:
        self.place, self.columns, self.changes = place, tuple(columns), changes

    def partitions(self) -> Sequence[InputPartition]:
        """Verify the files; see ``DataSourceReader``."""
        table = self.place.publish(READ).in_version()
        folder = table.changes if self.changes else table.rows
        return [FilePart(str(path), self.columns) for path in sorted(folder.glob("*.parquet"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one of them; see ``DataSourceReader``."""
        assert isinstance(partition, FilePart)
        return partition.read()


class ChangesReader(DataSourceStreamReader):  # type: ignore[misc]
    """Reads the rows that are written, by their offsets: each once, as they are in the chain."""

    def __init__(self, place: TableLocation, columns: Sequence[str], *, from_latest: bool) -> None:
        self.place, self.columns, self.from_latest = place, tuple(columns), from_latest

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - as DataSourceStreamReader has it
        """Say where a stream begins that has no checkpoint."""
        return self.latestOffset() if self.from_latest else {"offset": 0}

    def latestOffset(self, *_: object) -> dict[str, int]:  # noqa: N802
        """Say how many rows the chain has."""
        with self.place.opened() as found:
            return {"offset": load_view(found.node.store, found.record.id).next_offset}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Verify the files between two offsets."""
        first, behind = start["offset"], end["offset"]
        if behind <= first:
            return []
        folder = self.place.publish(READ).in_version().changes
        with self.place.opened() as found:
            store, record = found.node.store, found.record
            offset = load_view(store, record.id).vocabulary.offset
            return [
                FilePart(str(path), self.columns, offset, first, behind)
                for each in iter_slices(store, record.id)
                if each.offset_interval.end >= first and each.offset_interval.start < behind
                for path in _list_files(folder, str(each.physical_hash))
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one of them."""
        assert isinstance(partition, FilePart)
        return partition.read()

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept here: Spark's checkpoint says how far a stream is."""


def _list_files(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(f"{name}-*.parquet"))


def _spark_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(each.name, _spark_type(each.type), each.nullable) for each in schema])


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """Give the Arrow type in which Spark takes values; see ``odf_protocol.schema_spark``."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _spark_type(each.type), each.nullable) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _spark_type(kind.value_type), kind.value_field.nullable))
    if pa.types.is_map(kind):
        return pa.map_(_spark_type(kind.key_type), _spark_type(kind.item_type))
    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.large_string(): pa.string(),
        pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(),
        pa.binary_view(): pa.binary(),
        pa.date64(): pa.date32(),
    }
    return wider.get(kind, kind)
