"""What ingests took how long, kept for people: of a dataset's newest ones by block, and summed over all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from odf_engines.stage_figures import StageFigures
from odf_protocol.did import DatasetId

KEPT_INGESTS: Final = 100
"""Newest blocks of a dataset whose figures are kept.  # guess: a quarter of daily ingests"""

MAX_PLUG_INS: Final = 200
"""Plug-ins that are summed by name; more are summed together.  # guess: ten times those that come with the program"""

OTHER_PLUG_INS: Final = "other"
"""What these are called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTotal:
    """What a stage, or a plug-in of it, did in all ingests of this home since the table was made.

    ``plug_in`` is empty for the whole stage; ``batches`` it had.
    """

    stage: str
    plug_in: str
    batches: int
    seconds: float
    rows_in: int
    rows_out: int
    bad_rows: int


class StageStore(Protocol):
    """Figures of ingests by stage and plug-in."""

    def note_stages(self, dataset_id: DatasetId, sequence_number: int | None, stages: Sequence[StageFigures]) -> None:
        """Add figures of a batch to the sums, and keep them beside its block, None where it made none."""
        ...

    def find_stages(self, dataset_id: DatasetId, sequence_number: int) -> tuple[StageFigures, ...]:
        """Return the figures of the ingest that made a block; empty where they are not kept."""
        ...

    def list_stage_totals(self) -> list[StageTotal]:
        """Return the sums, by stage and plug-in."""
        ...
