"""What ingests leave beside the chain."""

from collections.abc import Iterator

from odf_node.ports.ingests import MAX_KEPT_KEYS, KeptAnswer, KeyInUseError
from odf_node.ports.quarantine import QuarantineFile, Settlement
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from support.memory_store.quarantine import put_quarantine, settle
from support.memory_store.tables import KeptDataset, MemoryPort


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

    def find_answer(self, dataset_id: DatasetId, caller: str, key: str) -> KeptAnswer | None:
        kept = self._tables.datasets.get(dataset_id)
        return None if kept is None else kept.answers.get((caller, key))

    def put_answer(
        self,
        dataset_id: DatasetId,
        answer: KeptAnswer,
        quarantine: QuarantineFile | None = None,
        settlement: Settlement | None = None,
    ) -> None:
        with self._tables.lock:
            kept = self._tables.get(dataset_id)
            require_new_key(kept, answer)
            if settlement is not None:
                settle(kept, settlement, None)
            keep_answer(kept, answer)
            if quarantine is not None:
                put_quarantine(self._tables, kept, quarantine)

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


def require_new_key(kept: KeptDataset, answer: KeptAnswer) -> None:
    """Check that nothing was answered under the key.

    Raises:
        KeyInUseError: Something was.
    """
    if (answer.key.caller, answer.key.text) in kept.answers:
        raise KeyInUseError(answer.key.text)


def keep_answer(kept: KeptDataset, answer: KeptAnswer) -> None:
    """Keep what was answered, and forget the oldest keys of the caller."""
    kept.answers[answer.key.caller, answer.key.text] = answer
    of_caller = [each for each in kept.answers if each[0] == answer.key.caller]
    for each in of_caller[:-MAX_KEPT_KEYS]:
        del kept.answers[each]
