"""Datasets that rows are looked up in while others are taken in: what was known of them then, in files of this node.

Source: clause CONV-8 in ``spec/conversion.md``; ENGINE-26 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from odf_engines.contract import ReferencedRows
from odf_node.datasets.chains import load_view
from odf_node.datasets.engine_rows import EngineRows
from odf_node.datasets.naming import get_dataset
from odf_node.datasets.presence import Presence
from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.ports.objects import StoredObjects
from odf_node.ports.rows import RowsCache
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.block_notes import LookedUp
from odf_protocol.did import DatasetId
from odf_protocol.events import AddData, DataSlice, ExecuteTransform
from odf_protocol.head import Head
from odf_protocol.timestamp import Timestamp

MAX_ROWS: Final = 5_000_000
"""Of a dataset that is looked into, all changes counted.  # guess: every company of a continent; an hour of it fits"""

MAX_BYTES: Final = 512 * 1024 * 1024
"""Of its files.  # guess: what a sandbox of 2 GiB can unpack a few columns of"""

_ITSELF: Final = "the dataset itself, whose first ingest would look for rows that there are not yet"


@dataclass(frozen=True, slots=True)
class References:
    """Gives the rows of datasets by the names that manifests have for them."""

    store: MetadataStore
    objects: StoredObjects
    cache: RowsCache

    def find_columns(self, name: str, *, of: str) -> ReferencedRows | None:
        """Return what a dataset's rows are like, without any; None where it never had rows.

        Args:
            name: Of the dataset.
            of: Name of the one whose ingests look into it.

        Raises:
            UnknownDatasetError: There is no such dataset here; or it is the same one, and never had rows.
        """
        try:
            record = get_dataset(self.store, name)
        except UnknownDatasetError as error:
            raise UnknownDatasetError(_ITSELF) if name.lower() == of.lower() else error from None
        view = load_view(self.store, record.id)
        if view.schema is not None:
            return ReferencedRows(vocabulary=view.vocabulary, schema=view.schema)
        if record.name == of:
            raise UnknownDatasetError(_ITSELF)
        return None

    def get(self, name: str, as_of: Timestamp) -> tuple[ReferencedRows, LookedUp]:
        """Return a dataset's rows as they were known at a time, and how far its chain was.

        Raises:
            UnknownDatasetError: There is no such dataset here.
            UsageError: It never had rows, or has too many.
            ObjectsAbsentError: Files are not here, or nobody checked their rows.
            RejectedError, MalformedError, UnsupportedError, ObjectCorruptError: As ``EngineRows.get_paths``.
        """
        record = get_dataset(self.store, name)
        view = load_view(self.store, record.id)
        if view.schema is None:
            raise UsageError(f"'{record.name}' has no rows to look into yet; pull or ingest it first")
        # The head comes first: what another process commits from now on is neither read nor said to be.
        head = self._find_head(record.id, as_of)
        slices = tuple(self._iter_slices(record.id, head))
        rows, size = sum(each.offset_interval.row_count for each in slices), sum(each.size for each in slices)
        if rows > MAX_ROWS or size > MAX_BYTES:
            raise UsageError(
                f"'{record.name}' is too large to look into ({rows:,} rows, {size:,} bytes; at most {MAX_ROWS:,} and"
                f" {MAX_BYTES:,}): join it in a derivative"
            )
        Presence(self.store, self.objects).require_checked(record, (each.physical_hash for each in slices))
        paths = EngineRows(self.store, self.objects, self.cache).get_paths(record.id, slices, view.schema)
        rows_then = ReferencedRows(vocabulary=view.vocabulary, schema=view.schema, slices=paths)
        return rows_then, LookedUp(record.id, head.hash)

    def _find_head(self, dataset_id: DatasetId, as_of: Timestamp) -> Head:
        """Return the newest block that was known at a time; the first where none was."""
        stored = self.store.iter_blocks_backwards(dataset_id)
        blocks = (decode_block(each.raw, expected_hash=each.hash) for each in stored)
        block = next(blocks)
        while block.sequence_number and block.system_time.truncated_to_ms() > as_of:
            block = next(blocks)
        return Head(block.sequence_number, block.hash)

    def _iter_slices(self, dataset_id: DatasetId, head: Head) -> Iterator[DataSlice]:
        for stored in self.store.iter_blocks_with_rows(dataset_id):
            block = decode_block(stored.raw, expected_hash=stored.hash)
            if block.sequence_number > head.sequence_number:
                return
            if isinstance(block.event, AddData | ExecuteTransform) and block.event.new_data is not None:
                yield block.event.new_data
