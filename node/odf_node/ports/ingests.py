"""What ingests leave beside the chain: quarantine files and merge states."""

from collections.abc import Iterator
from typing import Protocol

from odf_node.ports.ingest_keys import KeptAnswer
from odf_node.ports.quarantine import QuarantineFile, Settlement
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash


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
