"""A snapshot of which a batch may lack rows: they stay. The one file of an external package that adds a strategy."""

from odf_engines.strategies.contract import Merged, RowsToMerge
from odf_engines.strategies.snapshot import Snapshot
from odf_protocol.events import MergeStrategySnapshot


class KeepMissing(Snapshot):
    """New keys are appended, changed rows corrected, and what a batch does not have is not taken back."""

    version = "1"
    retracts_missing = False

    def merge(self, parameters: MergeStrategySnapshot, rows: RowsToMerge[Merged]) -> Merged:
        """Compare the columns that the manifest names."""
        return rows.compare(parameters.compare_columns, retracts_missing=False)
