"""The logical hash v1 of tables that tests have in memory."""

from collections.abc import Iterable

import pyarrow as pa

from odf_protocol.hashing.column_work import ColumnExecutor
from odf_protocol.hashing.v1 import LogicalHasher, TableSummary
from odf_protocol.hashing.v1_difference import TableHeader


def hash_table(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, executor: ColumnExecutor | None = None
) -> TableSummary:
    """Hash all rows of a table.

    Args:
        schema: As for ``LogicalHasher``, and so is ``executor``.
        batches: Rows in order, read once and not kept.
        executor: Runs the columns of a batch side by side.
    """
    hasher = LogicalHasher(schema, executor=executor)
    for batch in batches:
        hasher.update(batch)
    return hasher.summary()


def header_of(summary: TableSummary) -> TableHeader:
    """Return what a party sends before the first question."""
    return TableHeader(summary.row_count, summary.schema, summary.columns_top)
