"""UpsertStream: a row is the newest word about its key.

Source: spec/ingest.md ING-11.
"""

from typing import Any

from odf_engines.strategies.contract import Keeps, Merged, RowsToMerge, Strategy
from odf_protocol.events import MergeStrategyUpsertStream


class UpsertStream(Strategy):
    """See ``Strategy``."""

    event = MergeStrategyUpsertStream
    keeps = Keeps.ROWS
    takes_operation = True
    max_operation = 1  # to retract; Source: ODF OperationType
    operation_fault = "neither 0 (upsert) nor 1 (retract)"
    takes_null_operation = True
    rejects_timeless_keys = True

    def merge(self, parameters: Any, rows: RowsToMerge[Merged]) -> Merged:  # noqa: ARG002 - the key is known
        """See ``Strategy``."""
        return rows.compare(None, retracts_missing=False)
