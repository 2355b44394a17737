"""How far the distribution of a column is from that of the version that it is compared with, from their fingerprints.

Source: CONTRACT-5; what each measure means and when it misleads: ``spec/plug-ins/fingerprints.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odf_contracts.rules import RuleMeasure
from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.records.datasets import DatasetRecord
from odf_protocol.errors import NotFoundError, OdfError

if TYPE_CHECKING:
    from odf_fingerprints.documents import RowsFingerprint


@dataclass(slots=True)
class DriftReader:
    """Of one dataset; fingerprints are read once, and made where they are missing."""

    home: Home
    record: DatasetRecord
    _read: "Mapping[int, RowsFingerprint] | None" = field(default=None, init=False)
    _problem: str = field(default="it was not made", init=False)

    def measure(self, measure: RuleMeasure, version: int, before: int | None) -> tuple[float | None, str]:
        """Measure the drift of a column between the rows after two versions.

        Args:
            measure: Names the column and the measure.
            version: The number of the version.
            before: That of the one that it is compared with; None: there is none, and nothing drifted.

        Returns:
            The drift; None and a reason where the column has none.

        Raises:
            NotFoundError: A fingerprint cannot be made now, as rows are not here.
            UsageError: The plug-in that makes them is not installed.
        """
        if before is None:
            return 0.0, ""
        try:
            from odf_fingerprints import drift
        except ImportError as error:
            raise UsageError(
                "drift is measured of fingerprints, and the plug-in odf_fingerprints is not installed"
            ) from error
        (name,), (wanted,) = measure.columns, measure.values
        if self._read is None:
            self._read = self._make_and_read()
        by_number = self._read
        columns = []
        for number in (before, version):
            if number not in by_number:
                raise NotFoundError(f"version {number} has no fingerprint that was computed here: {self._problem}")
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

    def _make_and_read(self) -> "Mapping[int, RowsFingerprint]":
        """Compute what is missing, and read what was computed here: what others state of their rows proves nothing."""
        from odf_fingerprints.kept import FingerprintOrigin
        from odf_fingerprints.making import FingerprintMaker
        from odf_fingerprints.reading import read_fingerprints

        try:
            with FingerprintMaker(self.home) as maker:
                maker.make(self.record)
        except OdfError as error:
            self._problem = str(error)  # of those before it some were made
        found = read_fingerprints(self.home, self.record)
        return {each.sequence: each.current for each in found if each.origin is not FingerprintOrigin.PEER}
