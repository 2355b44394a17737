"""Forgetting datasets, without breaking those that are derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from odf_node.datasets.chains import load_view
from odf_node.home import Home
from odf_node.home_folder import sweep_dataset_folders
from odf_node.keys.logs import KeyLogs
from odf_node.records.datasets import DatasetRecord, Origin
from odf_protocol.enums import DatasetKind
from odf_protocol.transform_plan import input_ids


@dataclass(frozen=True, slots=True)
class Deletion:
    """The use case behind ``odf-node delete``."""

    home: Home

    def find_readers(self, records: Sequence[DatasetRecord]) -> list[tuple[DatasetRecord, DatasetRecord]]:
        """List pairs of a dataset to be deleted and a derivative that reads it and would stay."""
        going = {record.id: record for record in records}
        pairs = []
        for reader in self.home.store.list_datasets():
            if reader.id in going or reader.kind is not DatasetKind.DERIVATIVE:
                continue
            transform = load_view(self.home.store, reader.id).transform
            pairs += [(going[item], reader) for item in (input_ids(transform) if transform else ()) if item in going]
        return pairs

    def delete(self, record: DatasetRecord) -> None:
        """Delete the chain, then the key, then every file that nothing refers to any more, and its own folders."""
        self.home.store.delete_dataset(record.id)
        if record.origin is Origin.OWN:
            for period in KeyLogs(self.home.store).get_history(record.id).periods:
                self.home.keys.delete_signing_key(period.key)
        self.home.objects.sweep(self.home.store.list_referenced_objects, now=self.home.clock.now())
        sweep_dataset_folders(self.home.folder, lambda: (each.id for each in self.home.store.list_datasets()))
