"""Settings that can change a result: the same everywhere, and those that another implementation's engine has.

Source: clauses ENGINE-9 and FUSION-2 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

BATCH_ROWS: Final = 8_192
"""Rows that the engine computes at once. Source: DataFusion 54.1, whose default it is."""

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Names of columns differ by case.
        "datafusion.sql_parser.enable_ident_normalization": "false",
        # One ordered partition: order and grouping of rows cannot depend on cores.
        "datafusion.execution.target_partitions": "1",
        # Sums of floating-point numbers are made batch by batch.
        "datafusion.execution.batch_size": str(BATCH_ROWS),
        "datafusion.execution.coalesce_batches": "true",
        # It leaves out files and row groups by the values of the other side, and so rows with a null that a condition
        # IS NOT DISTINCT FROM another null would have found.
        "datafusion.optimizer.enable_join_dynamic_filter_pushdown": "false",
        "datafusion.catalog.default_catalog": "odf",
        "datafusion.catalog.default_schema": "odf",
        # What a query cannot reach.
        "datafusion.catalog.information_schema": "false",
    }
)
