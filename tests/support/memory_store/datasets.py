"""Records of datasets, as they are changed and as callers may see them."""

from dataclasses import replace

from odf_node.ports.access import ReadGrants
from odf_node.ports.datasets import DatasetRecord
from odf_node.ports.errors import NameMovedError, NameTakenError
from odf_protocol.did import DatasetId
from odf_protocol.names import DatasetName
from support.memory_store.tables import KeptDataset, MemoryPort


class MemoryDatasets(MemoryPort):
    """``DatasetStore`` in memory."""

    def set_published(self, dataset_id: DatasetId, published: bool) -> None:
        with self._tables.lock:
            kept = self._tables.get(dataset_id)
            kept.record = replace(kept.record, published=published)

    def rename_dataset(self, dataset_id: DatasetId, before: str, name: str) -> None:
        with self._tables.lock:
            if (held := self._tables.get(dataset_id).record.name) != before:
                raise NameMovedError(before, held)
            for other in self._tables.datasets.values():
                if other.record.name.lower() == name.lower() and other.record.id != dataset_id:
                    raise NameTakenError(name, other.record.id)
            kept = self._tables.get(dataset_id)
            kept.record = replace(kept.record, name=name)
            if (subscribed := self._tables.subscriptions.get(dataset_id)) is not None:
                self._tables.subscriptions[dataset_id] = replace(subscribed, name=name)

    def delete_dataset(self, dataset_id: DatasetId) -> None:
        with self._tables.lock:
            self._tables.get(dataset_id)
            del self._tables.datasets[dataset_id]

    def find_readable(self, which: DatasetId | DatasetName, reads: ReadGrants) -> DatasetRecord | None:
        def is_meant(kept: KeptDataset) -> bool:
            if isinstance(which, DatasetId):
                return kept.record.id == which
            return which.text.lower() in {kept.record.name.lower(), (kept.asked_name or "").lower()}

        with self._tables.lock:
            # The sort keeps the order of arrival among equals.
            ordered = sorted(self._tables.datasets.values(), key=lambda kept: kept.asked_name is not None)
            return next((_as_known(kept, reads) for kept in ordered if is_meant(kept) and _allows(reads, kept)), None)

    def list_readable(self, reads: ReadGrants) -> tuple[DatasetRecord, ...]:
        with self._tables.lock:
            known = [_as_known(kept, reads) for kept in self._tables.datasets.values() if _allows(reads, kept)]
        return tuple(sorted(known, key=lambda record: record.name))


def _allows(reads: ReadGrants, kept: KeptDataset) -> bool:
    return reads.allow(kept.record.id, published=kept.record.published)


def _as_known(kept: KeptDataset, reads: ReadGrants) -> DatasetRecord:
    if kept.asked_name is None or reads.everything:
        return kept.record
    return replace(kept.record, name=kept.asked_name)
