"""Ledger: a row is new where no row before had its key.

Source: spec/ingest.md ING-9.
"""

from typing import Any

from odf_engines.strategies.contract import Keeps, Merged, RowsToMerge, Strategy
from odf_protocol.events import MergeStrategyLedger


class Ledger(Strategy):
    """See ``Strategy``."""

    event = MergeStrategyLedger
    keeps = Keeps.KEYS

    def merge(self, parameters: Any, rows: RowsToMerge[Merged]) -> Merged:  # noqa: ARG002 - the key is known
        """See ``Strategy``."""
        return rows.append_unknown()
