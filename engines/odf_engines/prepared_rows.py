"""Rows of a source between the engine that ingests and the one that runs its query.

Source: spec/ingest.md ING-7.
"""

from dataclasses import dataclass
from pathlib import Path

from odf_engines.stage_figures import StageFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows:
    """Rows of a source on their way through a query that another engine runs (ING-7).

    Attributes:
        rows: Parquet: those that were read and converted; later, what the query made of them.
        quarantine: Records that could not be taken, with their errors, Parquet; None: all could.
        records: How many the source has.
        left_out: How many of them a converter left out (CONV-7).
        stages: What was done so far (STAGE-1).
    """

    rows: Path
    quarantine: Path | None
    records: int
    left_out: int = 0
    stages: tuple[StageFigures, ...] = ()
