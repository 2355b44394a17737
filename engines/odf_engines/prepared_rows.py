"""Rows of a source between the engine that ingests and the one that runs its query.

Source: spec/ingest.md ING-7.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from odf_engines.stage_figures import StageFigures

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows:
    """Rows of a source on their way through a query that another engine runs (ING-7).

    Attributes:
        rows: Parquet: those that were read and converted; later, what the query made of them.
        quarantine: Records that could not be taken, with their errors, Parquet; None: all could.
        records: How many the source has.
        left_out: How many of them a converter left out (CONV-7).
        stages: What was done so far (STAGE-1).
        samples: As in ``IngestResponse``.
    """

    rows: Path
    quarantine: Path | None
    records: int
    left_out: int = 0
    stages: tuple[StageFigures, ...] = ()
    samples: "Mapping[str, pa.Table]" = field(default_factory=dict)
