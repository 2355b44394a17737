"""What tests ask a store beside its own methods."""

from odf_node.records.datasets import DatasetRecord
from odf_node.store import MetadataStore


def find_named(store: MetadataStore, name: str) -> DatasetRecord | None:
    """Return the record of the dataset with this local name (compared exactly), or None."""
    return next((record for record in store.list_datasets() if record.name == name), None)
