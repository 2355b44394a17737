"""What was accepted, and on what grounds."""

from dataclasses import dataclass

from odf_node.acceptance.offers import Portion
from odf_node.ports.datasets import DatasetRecord
from odf_protocol.policy import Decision


@dataclass(frozen=True, slots=True)
class FileCount:
    """The files that blocks name, each once, and how many of them came for this; the others were here, or are not."""

    files: int = 0
    size_bytes: int = 0
    fetched_files: int = 0
    fetched_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AcceptanceReport:
    """What was accepted, and on what grounds.

    The completed blocks were held on their metadata alone; now their files came, or their rows were checked.
    ``unchecked``: what no acceptance of the dataset has looked at yet (PART-14).
    """

    record: DatasetRecord
    new_blocks: int
    new_rows: int
    replayed_steps: int
    decision: Decision
    warnings: tuple[str, ...]
    first_contact: bool
    portion: Portion = Portion.EVERYTHING
    new_files: FileCount = FileCount()
    completed_blocks: int = 0
    completed_rows: int = 0
    completed_files: FileCount = FileCount()
    unchecked: tuple[str, ...] = ()
