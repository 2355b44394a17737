"""Which objects rows name, for which dataset they came, and which of them need not be here (PART-4, EX-80 to EX-82)."""

from collections.abc import Iterable
from typing import Final, Protocol

from odf_node.ports.objects import Arrivals, ObjectStore
from odf_protocol.did import DatasetId
from odf_protocol.multihash import Multihash


class ObjectNames(Protocol):
    """Names of objects in rows; whether a file is there, the object store knows."""

    def is_referenced_object(self, object_hash: Multihash) -> bool:
        """Say whether a committed row names the object."""
        ...

    def list_referenced_objects(self) -> frozenset[Multihash]:
        """Return every object that a committed row names: what a sweep must keep."""
        ...

    def list_expected_objects(self) -> frozenset[Multihash]:
        """Return every object that has to be here: all that rows name, but for those that are absent everywhere."""
        ...

    def list_absent_objects(self, dataset_id: DatasetId) -> frozenset[Multihash]:
        """Return the objects of a dataset whose absence is no damage (PART-4); some may be here all the same."""
        ...

    def list_incomplete_datasets(self) -> frozenset[DatasetId]:
        """Return the datasets for which ``list_absent_objects`` returns something."""
        ...

    def has_dataset_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        """Say whether a block of the dataset names the object and its bytes came for this dataset (EX-81)."""
        ...

    def names_object(self, dataset_id: DatasetId, object_hash: Multihash) -> bool:
        """Say whether a block of the dataset names the object, which the dataset need not have (EX-81)."""
        ...

    def mark_absent(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        """Note that objects of a dataset may be absent from now on; those that it does not name are passed over."""
        ...

    def mark_brought(self, dataset_id: DatasetId, hashes: Iterable[Multihash]) -> None:
        """Note that objects of a dataset came for it and are durable; they may be absent all the same (PART-12)."""
        ...

    def mark_present(self, dataset_id: DatasetId, hashes: Iterable[Multihash], *, brought: bool = True) -> None:
        """Note that objects of a dataset are durable and what its blocks say, so they have to be here from now on.

        Those not ``brought`` for it, and that it did not have before, are for this node alone (EX-82).
        """
        ...


BY_PULLS: Final = "pull"
"""Whoever brings what this node's operator asks for: a dataset is had from several places."""


def open_arrivals(object_names: ObjectNames, objects: ObjectStore, dataset_id: DatasetId, brought_by: str) -> Arrivals:
    """Open what somebody brings for a dataset; beside it only what the dataset itself has counts as here (EX-80)."""
    return objects.arrivals(
        dataset_id, brought_by, already=lambda object_hash: object_names.has_dataset_object(dataset_id, object_hash)
    )
