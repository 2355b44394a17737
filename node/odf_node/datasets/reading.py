"""Reading data without an engine: the newest rows."""

from dataclasses import dataclass

import pyarrow as pa

from odf_engines.reading.evolved_rows import in_columns
from odf_node.datasets.chains import iter_slices, load_view
from odf_node.datasets.presence import Presence, explained_damage
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord
from odf_node.rows.slice_process import SliceProcess
from odf_protocol.multihash import Multihash
from odf_protocol.schema_arrow import rows_schema_of


@dataclass(frozen=True, slots=True)
class DataReader:
    """The use case behind ``odf-node tail``."""

    home: Home

    def list_tail(self, record: DatasetRecord, *, count: int, skip: int = 0) -> list[Multihash]:
        """List the slices, oldest first, that ``tail`` reads with the same arguments."""
        hashes: list[Multihash] = []
        rows = 0
        for item in iter_slices(self.home.store, record.id, newest_first=True, upto=record.head.sequence_number):
            if rows >= count + skip:
                break
            hashes.insert(0, item.physical_hash)
            rows += item.offset_interval.row_count
        return hashes

    def tail(self, record: DatasetRecord, *, count: int, skip: int = 0) -> "pa.Table":
        """Return the last ``count`` rows before the newest ``skip`` ones, oldest first; few slices are opened."""
        hashes = self.list_tail(record, count=count, skip=skip)
        Presence(self.home.store, self.home.objects).require_checked(record, hashes)
        self.home.store.access.note_read(record)
        parts = []
        with SliceProcess() as reader:
            for item in hashes:
                with explained_damage(self.home.store, self.home.objects, record.id, item):
                    parts.append(reader.read_last_rows(self.home.objects.get_path(item), count + skip))
        schema = load_view(self.home.store, record.id).schema
        if schema is None:
            return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        columns = rows_schema_of(schema)
        batches = (batch for part in parts for batch in part.to_batches())
        fitted = [in_columns(batch, columns) for batch in batches]  # SCHEMA-5
        table = pa.Table.from_batches(fitted, columns)
        end = max(0, table.num_rows - skip)
        return table.slice(max(0, end - count), min(count, end))
