"""Append: every row is a new one.

Source: spec/ingest.md ING-8.
"""

from typing import Any

from odf_engines.strategies.contract import Merged, RowsToMerge, Strategy
from odf_protocol.events import MergeStrategyAppend


class Append(Strategy):
    """See ``Strategy``."""

    event = MergeStrategyAppend

    def merge(self, parameters: Any, rows: RowsToMerge[Merged]) -> Merged:  # noqa: ARG002 - it has none
        """See ``Strategy``."""
        return rows.append()
