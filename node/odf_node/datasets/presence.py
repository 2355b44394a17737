"""Files of a dataset that cannot be read here, and what brings them back.

They are absent by choice (the dataset was taken on its metadata alone, or its cache was dropped), or their bytes
decayed.

Source: clauses PART-4 to PART-6 in ``spec/extensions/partial-clones.md``.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from odf_node.errors import ObjectsAbsentError
from odf_node.ports.objects import StoredObjects
from odf_node.records.datasets import DatasetRecord
from odf_node.records.errors import ObjectCorruptError
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError, RejectedError
from odf_protocol.multihash import Multihash
from odf_protocol.policy import Trust


@dataclass(frozen=True, slots=True)
class Presence:
    """Says what is missing, and stops whoever needs it."""

    store: MetadataStore
    objects: StoredObjects

    def find_absent(self, record: DatasetRecord) -> frozenset[Multihash]:
        """Return the files of a dataset that need not be here and are not."""
        marked = self.store.list_absent_objects(record.id)
        # That the same bytes are here for another dataset is no reason to take them for this one (EX-80).
        return frozenset(
            item for item in marked if not (self.store.has_dataset_object(record.id, item) and self.objects.has(item))
        )

    def require(self, record: DatasetRecord, needed: Iterable[Multihash] | None = None) -> None:
        """Stop whoever needs files of a dataset (None: all) that are not here by choice.

        Raises:
            ObjectsAbsentError: Some are not.
        """
        absent = self.find_absent(record)
        if needed is not None:
            absent &= frozenset(needed)
        if absent:
            raise ObjectsAbsentError(record.name, len(absent), describe_remedy(record))

    def require_checked(self, record: DatasetRecord, needed: Iterable[Multihash]) -> None:
        """Stop whoever reads rows of files that are not here by choice, or that nobody compared with their blocks.

        Raises:
            ObjectsAbsentError: Some are such files (PART-9, PART-12).
        """
        marked = self.store.list_absent_objects(record.id) & frozenset(needed)
        if marked:
            raise ObjectsAbsentError(record.name, len(marked), describe_remedy(record))


def describe_remedy(record: DatasetRecord) -> str:
    """Say what brings the files of a dataset here."""
    if record.trust is Trust.METADATA:
        return f"'odf-node pull {record.name}' brings and verifies them"
    return f"'odf-node cache rebuild {record.name}' brings them back"


@contextmanager
def explained_damage(
    store: MetadataStore, objects: StoredObjects, dataset_id: DatasetId, object_hash: Multihash
) -> Iterator[None]:
    """Name the object and the remedy where what is done in the block fails because the object's bytes decayed.

    Raises:
        ObjectCorruptError: They did; what was raised in the block otherwise.
    """
    try:
        yield
    except (MalformedError, RejectedError) as error:
        try:
            objects.check(object_hash)
        except ObjectCorruptError as damage:
            record = store.find_dataset(dataset_id)
            raise damage.with_remedy(record.name if record else str(dataset_id)) from error
        raise
