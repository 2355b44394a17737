"""Which objects are named, and which of them need not be here (PART-4)."""

from collections.abc import Iterable

from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash
from support.memory_store.tables import KeptDataset, MemoryPort


class MemoryObjectNames(MemoryPort):
    """``ObjectNames`` in memory."""

    def is_referenced_object(self, object_hash: Multihash) -> bool:
        return object_hash in self.list_referenced_objects()

    def list_referenced_objects(self) -> frozenset[Multihash]:
        with self._tables.lock:
            return frozenset(name for kept in self._tables.datasets.values() for name in (*kept.objects, *_own(kept)))

    def list_expected_objects(self) -> frozenset[Multihash]:
        with self._tables.lock:
            return frozenset(
                name
                for kept in self._tables.datasets.values()
                for name in (*(each for each, named in kept.objects.items() if not named.absent), *_own(kept))
            )

    def list_absent_objects(self, dataset_id: DatasetId) -> frozenset[Multihash]:
        with self._tables.lock:
            objects = self._tables.get(dataset_id).objects
            return frozenset(name for name, named in objects.items() if named.absent)

    def list_incomplete_datasets(self) -> frozenset[DatasetId]:
        with self._tables.lock:
            return frozenset(each for each in self._tables.datasets if self.list_absent_objects(each))

    def has_dataset_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        kept = self._tables.datasets.get(dataset_id)
        return kept is not None and object_hash in kept.objects and kept.objects[object_hash].brought

    def names_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        kept = self._tables.datasets.get(dataset_id)
        return kept is not None and object_hash in kept.objects

    def mark_absent(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        with self._tables.lock:
            objects = self._tables.get(dataset_id).objects
            for name in objects.keys() & set(hashes):
                objects[name].absent = True

    def mark_brought(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        with self._tables.lock:
            objects = self._tables.get(dataset_id).objects
            for name in objects.keys() & set(hashes):
                objects[name].brought = True

    def mark_present(self, dataset_id: DatasetId, hashes: Iterable[Multihash], *, brought: bool = True) -> None:
        with self._tables.lock:
            note_present(self._tables.get(dataset_id), hashes, brought=brought)


def note_present(kept: KeptDataset, hashes: Iterable[Multihash], *, brought: bool) -> None:
    """Note that objects of a dataset are durable and have to be here."""
    for name in kept.objects.keys() & set(hashes):
        kept.objects[name].absent = False
        kept.objects[name].brought |= brought


def _own(kept: KeptDataset) -> tuple[Multihash, ...]:
    merge_state = () if kept.merge_state is None else kept.merge_state[1:]
    batches = (each.batch.file for each in kept.quarantine if each.batch is not None and each.batch.file is not None)
    return (*(each.object_hash for each in kept.quarantine), *batches, *merge_state)
