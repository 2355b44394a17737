"""Snapshot: a batch is the whole truth about a table.

Source: spec/ingest.md ING-10.
"""

from odf_engines.strategies.contract import Keeps, Merged, RowsToMerge, Strategy
from odf_protocol.events import MergeStrategySnapshot


class Snapshot(Strategy):
    """See ``Strategy``."""

    event = MergeStrategySnapshot
    keeps = Keeps.ROWS
    retracts_missing = True
    rejects_timeless_keys = True

    def merge(self, parameters: MergeStrategySnapshot, rows: RowsToMerge[Merged]) -> Merged:
        """See ``Strategy``."""
        return rows.compare(parameters.compare_columns, retracts_missing=True)
