"""Versions of a table: the blocks of its chain that have rows or change its columns.

Source: clauses TABLE-7 and TABLE-9 in ``spec/plug-ins/tables.md``.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from odf_node.composition import Node
from odf_node.datasets.chains import iter_decoded
from odf_node.front.table_operations import TableVersion
from odf_node.records.datasets import DatasetRecord
from odf_protocol.block import Block
from odf_protocol.block_notes import find_reason
from odf_protocol.events import AddData, ExecuteTransform, SetDataSchema
from odf_tables.notes import find_write

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def list_versions(node: Node, record: DatasetRecord) -> list[TableVersion]:
    """List the versions, newest first."""
    blocks = iter_decoded(node.store, record.id)
    return [version for block in blocks if (version := _find_version(block)) is not None][::-1]


def iter_row_versions(node: Node, record: DatasetRecord, *, since: int, until: int) -> Iterator[tuple[int, int]]:
    """Yield the last offset of each block with rows behind one version, up to another one, and the block's number."""
    for block in iter_decoded(node.store, record.id, after=since, upto=until):
        event = block.event
        if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
            yield event.new_data.offset_interval.end, block.sequence_number


def find_before_newest_rows(node: Node, record: DatasetRecord) -> int:
    """Find the version that the newest block with rows follows; 0 where no block has rows."""
    newest = next(node.store.iter_blocks_with_rows(record.id, newest_first=True), None)
    return 0 if newest is None else newest.sequence_number - 1


def _find_version(block: Block) -> TableVersion | None:
    time = _EPOCH + timedelta(milliseconds=block.system_time.unix_ms)
    event = block.event
    if isinstance(event, SetDataSchema):
        return TableVersion(block.sequence_number, time, "schema")
    if not isinstance(event, AddData | ExecuteTransform) or event.new_data is None:
        return None
    rows = event.new_data.offset_interval.row_count
    if (note := find_write(event)) is not None:
        return TableVersion(block.sequence_number, time, note.operation, rows, note.changed, note.detail)
    if (reason := find_reason(event)) is not None:
        return TableVersion(block.sequence_number, time, "correct", rows, detail=reason)
    return TableVersion(block.sequence_number, time, "ingest" if isinstance(event, AddData) else "step", rows)
