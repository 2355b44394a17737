"""Chains: which are here, their heads, their blocks."""

from collections.abc import Callable, Iterable, Iterator

from odf_node.ports.commits import NewBlock
from odf_node.ports.datasets import BlockRole, DatasetRecord, StoredBlock
from odf_node.ports.errors import BlockNotFoundError, DatasetNotFoundError
from odf_protocol.did import DatasetId
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash
from support.memory_store.tables import KeptDataset, MemoryPort, as_stored


class MemoryChains(MemoryPort):
    """``ChainStore`` in memory."""

    def find_dataset(self, dataset_id: DatasetId) -> DatasetRecord | None:
        kept = self._tables.datasets.get(dataset_id)
        return None if kept is None else kept.record

    def list_datasets(self) -> tuple[DatasetRecord, ...]:
        with self._tables.lock:
            return tuple(sorted((kept.record for kept in self._tables.datasets.values()), key=lambda each: each.name))

    def get_head(self, dataset_id: DatasetId) -> Head:
        return self._tables.get(dataset_id).record.head

    def get_chain_states(self, dataset_ids: Iterable[DatasetId]) -> dict[DatasetId, bytes]:
        with self._tables.lock:
            kept = self._tables.datasets
            return {each: kept[each].chain_state for each in dataset_ids if each in kept}

    def get_chain_state(self, dataset_id: DatasetId) -> tuple[Head, bytes]:
        with self._tables.lock:
            kept = self._tables.get(dataset_id)
            return kept.record.head, kept.chain_state

    def iter_blocks(self, dataset_id: DatasetId, *, after: int = -1, upto: int | None = None) -> Iterator[StoredBlock]:
        kept, last = self._find_end(dataset_id, upto)
        return self._read(kept, range(max(after + 1, 0), last + 1))

    def iter_blocks_backwards(self, dataset_id: DatasetId) -> Iterator[StoredBlock]:
        kept, last = self._find_end(dataset_id, None)
        return self._read(kept, range(last, -1, -1))

    def iter_landmarks(self, dataset_id: DatasetId, *, upto: int | None = None) -> Iterator[StoredBlock]:
        kept, last = self._find_end(dataset_id, upto)
        blocks = kept.blocks[: last + 1]
        newest = {block.role: block.sequence_number for block in blocks}
        numbers = [b.sequence_number for b in blocks if b.role is BlockRole.DEFINITION]
        return self._read(kept, sorted({*numbers, *newest.values()}))

    def iter_blocks_with_rows(self, dataset_id: DatasetId, *, newest_first: bool = False) -> Iterator[StoredBlock]:
        kept, last = self._find_end(dataset_id, None)
        numbers = range(last, -1, -1) if newest_first else range(last + 1)
        return self._read(kept, [number for number in numbers if kept.blocks[number].role >= BlockRole.ROWS])

    def count_blocks(self, dataset_id: DatasetId, role: BlockRole, *, first: int, last: int) -> int:
        blocks = self._tables.get(dataset_id).blocks
        return sum(1 for block in blocks if block.role is role and first <= block.sequence_number <= last)

    def find_block(self, dataset_id: DatasetId, block_hash: Multihash) -> StoredBlock | None:
        return self._find(dataset_id, lambda block: block.hash == block_hash)

    def find_block_by_number(self, dataset_id: DatasetId, sequence_number: int) -> StoredBlock | None:
        return self._find(dataset_id, lambda block: block.sequence_number == sequence_number)

    def _find(self, dataset_id: DatasetId, is_wanted: Callable[[NewBlock], bool]) -> StoredBlock | None:
        with self._tables.lock:
            kept = self._tables.datasets.get(dataset_id)
            return None if kept is None else next((as_stored(each) for each in kept.blocks if is_wanted(each)), None)

    def _find_end(self, dataset_id: DatasetId, upto: int | None) -> tuple[KeptDataset, int]:
        kept = self._tables.get(dataset_id)
        newest = kept.record.head.sequence_number
        if upto is not None and upto > newest:
            raise BlockNotFoundError(dataset_id, upto)
        return kept, newest if upto is None else upto

    def _read(self, kept: KeptDataset, numbers: "range | list[int]") -> Iterator[StoredBlock]:
        for number in numbers:
            # One that was deleted and came back is not taken for the one begun.
            if self._tables.datasets.get(kept.record.id) is not kept:
                raise DatasetNotFoundError(kept.record.id)
            yield as_stored(kept.blocks[number])
