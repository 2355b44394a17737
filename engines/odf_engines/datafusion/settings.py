"""Settings that can change a result: the same everywhere, and those that another implementation's engine has.

Source: clauses ENGINE-9 and FUSION-2 in ``spec/extensions/engine-contract.md``.
"""

from collections.abc import Mapping
from types import MappingProxyType

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Names of columns differ by case.
        "datafusion.sql_parser.enable_ident_normalization": "false",
        # One ordered partition: order and grouping of rows cannot depend on cores.
        "datafusion.execution.target_partitions": "1",
        # Sums of floating-point numbers are made batch by batch.
        "datafusion.execution.batch_size": "8192",
        "datafusion.execution.coalesce_batches": "true",
        "datafusion.catalog.default_catalog": "odf",
        "datafusion.catalog.default_schema": "odf",
        # What a query cannot reach.
        "datafusion.catalog.information_schema": "false",
    }
)
