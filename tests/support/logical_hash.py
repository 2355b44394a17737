"""Logical hashes of tables that tests have in memory."""

from collections.abc import Iterable

import pyarrow as pa

from odf_protocol.hashing.arrow0 import Arrow0Hasher
from odf_protocol.hashing.column_work import ColumnExecutor
from odf_protocol.hashing.v1 import LogicalHasher, TableSummary
from odf_protocol.hashing.v1_difference import TableHeader
from odf_protocol.multihash import Multihash


def hash_batches(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    executor: ColumnExecutor | None = None,
    row_group_rows: Iterable[int] = (),
) -> Multihash:
    """Hash all rows of a table as recorded in blocks; the arguments are those of ``Arrow0Hasher``."""
    hasher = Arrow0Hasher(schema, executor=executor, row_group_rows=row_group_rows)
    for batch in batches:
        hasher.update(batch)
    return hasher.digest()


def hash_table(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, executor: ColumnExecutor | None = None
) -> TableSummary:
    """Hash all rows of a table by v1.

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
