"""Settings that can change a result: the same everywhere, and those that another implementation's engine has.

Source: clauses ENGINE-9 and FUSION-2 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["SETTINGS"]

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Names of columns differ by case.
        "datafusion.sql_parser.enable_ident_normalization": "false",
        # One ordered partition: order and grouping of rows cannot depend on cores.
        "datafusion.execution.target_partitions": "1",
        "datafusion.catalog.default_catalog": "odf",
        "datafusion.catalog.default_schema": "odf",
        # What a file says of its rows is its publisher's word (ENGINE-26): rows are read.
        "datafusion.execution.collect_statistics": "false",
        "datafusion.execution.parquet.bloom_filter_on_read": "false",
        "datafusion.execution.parquet.enable_page_index": "false",
        "datafusion.execution.parquet.pruning": "false",
        # What a query cannot reach.
        "datafusion.catalog.information_schema": "false",
    }
)
