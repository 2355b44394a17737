"""Forgetting datasets, without breaking those that are derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from odf_node.datasets.chains import load_view
from odf_node.home_folder import HomeFolder, sweep_dataset_folders
from odf_node.keys.logs import KeyLogs
from odf_node.ports.clock import Clock
from odf_node.ports.keys import KeyStore
from odf_node.ports.objects import ObjectUpkeep
from odf_node.records.datasets import DatasetRecord, Origin
from odf_node.store import MetadataStore
from odf_protocol.enums import DatasetKind
from odf_protocol.transform_plan import input_ids


@dataclass(frozen=True, slots=True)
class Deletion:
    """The use case behind ``odf-node delete``."""

    store: MetadataStore
    objects: ObjectUpkeep
    keys: KeyStore
    clock: Clock
    home: HomeFolder

    def find_readers(self, records: Sequence[DatasetRecord]) -> list[tuple[DatasetRecord, DatasetRecord]]:
        """List pairs of a dataset to be deleted and a derivative that reads it and would stay."""
        going = {record.id: record for record in records}
        pairs = []
        for reader in self.store.list_datasets():
            if reader.id in going or reader.kind is not DatasetKind.DERIVATIVE:
                continue
            transform = load_view(self.store, reader.id).transform
            pairs += [(going[item], reader) for item in (input_ids(transform) if transform else ()) if item in going]
        return pairs

    def delete(self, record: DatasetRecord) -> None:
        """Delete the chain, then the key, then every file that nothing refers to any more, and its own folders."""
        self.store.delete_dataset(record.id)
        if record.origin is Origin.OWN:
            for period in KeyLogs(self.store).get_history(record.id).periods:
                self.keys.delete_signing_key(period.key)
        self.objects.sweep(self.store.list_referenced_objects, now=self.clock.now())
        sweep_dataset_folders(self.home, lambda: (each.id for each in self.store.list_datasets()))
