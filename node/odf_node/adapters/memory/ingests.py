"""What ingests leave beside the chain."""

from collections.abc import Iterator

from odf_node.adapters.memory.quarantine import put_quarantine
from odf_node.adapters.memory.tables import MemoryPort
from odf_node.ports.quarantine import QuarantineFile
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash


class MemoryIngests(MemoryPort):
    """``IngestStore`` in memory."""

    def put_quarantine(self, quarantine: QuarantineFile) -> None:
        with self._tables.lock:
            put_quarantine(self._tables, self._tables.get(quarantine.dataset_id), quarantine)

    def iter_quarantine(self, dataset_id: DatasetId) -> Iterator[QuarantineFile]:
        return iter(tuple(self._tables.get(dataset_id).quarantine))

    def list_datasets_with_quarantine(self) -> frozenset[DatasetId]:
        with self._tables.lock:
            return frozenset(each for each, kept in self._tables.datasets.items() if kept.quarantine)

    def find_batch_size(self, dataset_id: DatasetId, push_source: str | None) -> int | None:
        kept = self._tables.datasets.get(dataset_id)
        return None if kept is None else kept.batch_sizes.get(push_source or "")

    def put_batch_size(self, dataset_id: DatasetId, push_source: str | None, row_count: int) -> None:
        with self._tables.lock:
            self._tables.get(dataset_id).batch_sizes[push_source or ""] = row_count

    def find_fetched_place(self, dataset_id: DatasetId, state: str) -> bytes | None:
        kept = self._tables.datasets.get(dataset_id)
        noted = None if kept is None else kept.fetched_place
        return noted.place if noted is not None and noted.state == state else None

    def find_merge_state(self, dataset_id: DatasetId, block_hash: Multihash) -> Multihash | None:
        kept = self._tables.datasets.get(dataset_id)
        if kept is None or kept.merge_state is None or kept.merge_state[0] != block_hash:
            return None
        return kept.merge_state[1]

    def find_newest_merge_state(self, dataset_id: DatasetId) -> Multihash | None:
        kept = self._tables.datasets.get(dataset_id)
        return None if kept is None or kept.merge_state is None else kept.merge_state[1]
