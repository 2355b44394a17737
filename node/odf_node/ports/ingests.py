"""What ingests leave beside the chain: quarantine files, merge states, answers (FEED-1), and how long they took."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from odf_engines.stage_figures import StageFigures
from odf_node.ports.quarantine import QuarantineFile, Settlement
from odf_protocol.did import DatasetId
from odf_protocol.errors import RejectedError, UnavailableError
from odf_protocol.multihash import Multihash

MAX_KEPT_KEYS: Final = 10_000
"""Of a caller for a dataset.  # guess: a batch a second, repeated for almost three hours"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestKey:
    """A key under which something is asked once.

    Attributes:
        caller: Whose key it is: the id of a token; empty for whoever runs this node.
        text: The key.
        asked: SHA3-256 of everything that the answer follows from.
    """

    caller: str
    text: str
    asked: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """The first answer under a key; ``sequence_number`` is that of the dataset's newest block then."""

    key: IngestKey
    sequence_number: int
    text: str


class KeyReusedError(RejectedError):
    """Something else was asked under the key before."""

    def __init__(self, key: str) -> None:
        super().__init__("FEED-2 key-is-for-one-request")
        text = f"other rows, or the same in another way, were sent under the key {key!r} before; nothing was done"
        self.args = (text,)


class KeyInUseError(UnavailableError):
    """What is asked under the key is being done now, or has just been done by somebody else."""

    def __init__(self, key: str) -> None:
        super().__init__(f"rows sent under the key {key!r} are being taken in; ask again for the answer")


class IngestStore(Protocol):
    """Rows set aside, and the projected state that the next ingest goes on from."""

    def put_quarantine(self, quarantine: QuarantineFile) -> None:
        """Keep a quarantine file of an ingest that made no block; its object is durable already."""
        ...

    def iter_quarantine(self, dataset_id: DatasetId) -> Iterator[QuarantineFile]:
        """Yield the dataset's quarantine files, oldest first."""
        ...

    def list_datasets_with_quarantine(self) -> frozenset[DatasetId]:
        """Return the datasets for which ``iter_quarantine`` yields something."""
        ...

    def find_answer(self, dataset_id: DatasetId, caller: str, key: str) -> KeptAnswer | None:
        """Return what was answered under a caller's key; None: nothing yet, or ``MAX_KEPT_KEYS`` keys ago."""
        ...

    def put_answer(
        self,
        dataset_id: DatasetId,
        answer: KeptAnswer,
        quarantine: QuarantineFile | None = None,
        settlement: Settlement | None = None,
    ) -> None:
        """Keep the answer of an ingest that made no block, with what it set aside and settled, all or nothing.

        Raises:
            KeyInUseError: Somebody else kept an answer under the key.
            SettledError: What it settles does not wait any more.
        """
        ...

    def find_batch_size(self, dataset_id: DatasetId, push_source: str | None) -> int | None:
        """Return how many rows the batch had that was taken last from a source; None for the polled one."""
        ...

    def put_batch_size(self, dataset_id: DatasetId, push_source: str | None, row_count: int) -> None:
        """Note how many rows a batch had that was taken; what limits compare the next one with."""
        ...

    def find_fetched_place(self, dataset_id: DatasetId, state: str) -> bytes | None:
        """Return the digest of the place that the newest noted source state came from; None: it is another state."""
        ...

    def find_merge_state(self, dataset_id: DatasetId, block_hash: Multihash) -> Multihash | None:
        """Return the object with the projected state after a block, or None: then it is computed again."""
        ...

    def find_newest_merge_state(self, dataset_id: DatasetId) -> Multihash | None:
        """Return the object with the one projected state that is kept for the dataset, after whichever block."""
        ...


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
