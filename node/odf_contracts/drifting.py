"""How far the distribution of a column is from that of the version that it is compared with, from their fingerprints.

Source: CONTRACT-5; what each measure means and when it misleads: ``spec/plug-ins/fingerprints.md``.
"""

from dataclasses import dataclass

from odf_contracts.rules import RuleMeasure
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord


@dataclass(frozen=True, slots=True)
class DriftReader:
    """Of one dataset."""

    home: Home
    record: DatasetRecord

    def measure(self, measure: RuleMeasure, version: int, before: int | None) -> tuple[float | None, str]:
        """Measure the drift of a column between the rows after two versions.

        Args:
            measure: Names the column and the measure.
            version: The number of the version.
            before: That of the one that it is compared with; None: there is none, and nothing drifted.

        Returns:
            The drift; None and a reason where there is no fingerprint to measure it of.
        """
        if before is None:
            return 0.0, ""
        try:
            from odf_fingerprints import drift
            from odf_fingerprints.reading import read_fingerprints
        except ImportError:
            return None, "drift is measured of fingerprints, and the plug-in odf_fingerprints is not installed"
        (name,), (wanted,) = measure.columns, measure.values
        by_number = {each.sequence: each.current for each in read_fingerprints(self.home, self.record)}
        columns = []
        for number in (before, version):
            if number not in by_number:
                return None, f"version {number} has no fingerprint here"
            column = by_number[number].column(name)
            if column is None:
                return None, f"the fingerprint of version {number} has no column {name!r}"
            if column.kind not in {"number", "time"}:
                return None, f"the column {name!r} has no order in which its values are counted"
            columns.append(column.histogram)
        measures = {
            "psi": drift.population_stability_index,
            "jensenShannon": drift.jensen_shannon,
            "kolmogorovSmirnov": drift.kolmogorov_smirnov,
        }
        return measures[wanted](*columns), ""
