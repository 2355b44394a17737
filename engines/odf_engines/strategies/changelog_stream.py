"""ChangelogStream: rows say themselves what they do.

Source: spec/ingest.md ING-11.
"""

from typing import Any

from odf_engines.strategies.contract import Merged, RowsToMerge, Strategy
from odf_protocol.events import MergeStrategyChangelogStream


class ChangelogStream(Strategy):
    """See ``Strategy``."""

    event = MergeStrategyChangelogStream
    takes_operation = True
    needs_operation = True
    max_operation = 3  # correct-to; Source: ODF OperationType
    operation_fault = "not an operation (0 to 3)"

    def merge(self, parameters: Any, rows: RowsToMerge[Merged]) -> Merged:  # noqa: ARG002 - the key is known
        """See ``Strategy``."""
        return rows.pass_on()
