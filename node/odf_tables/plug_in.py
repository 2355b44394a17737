"""The plug-in: what the tables of Python's front do.

Source: clause TABLE-1 in ``spec/plug-ins/tables.md``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from odf_node.composition import Node
from odf_node.front.table_operations import (
    Frame,
    IncrementalRows,
    TableDifference,
    TableOperations,
    TableVersion,
    WriteOptions,
    Written,
)
from odf_node.records.datasets import DatasetRecord
from odf_tables.changes import VersionChanges
from odf_tables.consumers import Consumer
from odf_tables.creation import create_table
from odf_tables.evolution import add_columns
from odf_tables.frames import read_frame
from odf_tables.planning import Delete, Insert, Overwrite, RestoreVersion, Upsert, Write
from odf_tables.queries import Relations
from odf_tables.versions import list_versions
from odf_tables.writes import run_write


class Tables(TableOperations):
    """See ``TableOperations``."""

    def create(
        self, node: Node, name: str, schema: object, *, key: Sequence[str] = (), event_time: str | None = None
    ) -> DatasetRecord:
        """See ``TableOperations``."""
        return create_table(node, name, schema, key=key, event_time=event_time)

    def insert(self, node: Node, record: DatasetRecord, frame: Frame, options: WriteOptions) -> Written:
        """See ``TableOperations``."""
        return _write(node, record, Insert(read_frame(frame)), options)

    def upsert(
        self, node: Node, record: DatasetRecord, frame: Frame, keys: Sequence[str] | None, options: WriteOptions
    ) -> Written:
        """See ``TableOperations``."""
        named = (keys,) if isinstance(keys, str) else None if keys is None else tuple(keys)
        return _write(node, record, Upsert(read_frame(frame), named), options)

    def delete(self, node: Node, record: DatasetRecord, where: str, options: WriteOptions) -> Written:
        """See ``TableOperations``."""
        return _write(node, record, Delete(where), options)

    def overwrite(
        self, node: Node, record: DatasetRecord, frame: Frame, where: str | None, options: WriteOptions
    ) -> Written:
        """See ``TableOperations``."""
        return _write(node, record, Overwrite(read_frame(frame), where), options)

    def restore(self, node: Node, record: DatasetRecord, version: int, options: WriteOptions) -> Written:
        """See ``TableOperations``."""
        return _write(node, record, RestoreVersion(Relations(node, record).require_version(version)), options)

    def list_versions(self, node: Node, record: DatasetRecord) -> list[TableVersion]:
        """See ``TableOperations``."""
        return list_versions(node, record)

    def read_changes(self, node: Node, record: DatasetRecord, since: int, until: int | None) -> pa.Table:
        """See ``TableOperations``."""
        return VersionChanges(Relations(node, record)).read(since, until)

    def compare(self, node: Node, record: DatasetRecord, since: int, until: int | None) -> TableDifference:
        """See ``TableOperations``."""
        return VersionChanges(Relations(node, record)).compare(since, until)

    def read_incremental(self, node: Node, record: DatasetRecord, consumer: str) -> IncrementalRows:
        """See ``TableOperations``."""
        return Consumer.of(node.home.folder, record, consumer).read(VersionChanges(Relations(node, record)))


def _write(node: Node, record: DatasetRecord, write: Write, options: WriteOptions) -> Written:
    if options.merge_schema and isinstance(write, Insert | Upsert | Overwrite):
        version = add_columns(node, record, write.frame, options.if_version)
        options = replace(options, if_version=version)
    written = run_write(node, record, write, options)
    if options.consumed is not None:
        options.consumed.commit()
    return written


TABLES: Final = Tables()
"""Found by its entry point in the group ``odf_node.tables``."""
